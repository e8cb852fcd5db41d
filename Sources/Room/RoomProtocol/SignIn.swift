/// Body of `POST /v1/sign-in`.
package struct SignInRequest: Codable, Sendable, Equatable {
    package var serviceId: String
    package var serviceSecret: String

    package init(serviceId: String, serviceSecret: String) {
        self.serviceId = serviceId
        self.serviceSecret = serviceSecret
    }
}

/// The response to a sign-in and to the page's token request.
package struct AccessGrant: Codable, Sendable, Equatable {
    package var accessToken: String
    /// Seconds until the token expires.
    package var expiresIn: Int

    package init(accessToken: String, expiresIn: Int) {
        self.accessToken = accessToken
        self.expiresIn = expiresIn
    }
}
