#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

/* Swift imports no macros with arguments. These are the ones for DTLS, with the same names in lower case. */

static inline uint64_t ssl_op_dtls_defaults(void) {
    return SSL_OP_NO_QUERY_MTU | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE;
}

static inline int ssl_ctx_set_dtls_1_2_only(SSL_CTX *context) {
    return SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) == 1
        && SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION) == 1;
}

static inline void ssl_ctx_forget_sessions(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline void ssl_ctx_read_ahead(SSL_CTX *context) {
    SSL_CTX_set_read_ahead(context, 1);
}

static inline long ssl_set_mtu(SSL *ssl, long mtu) {
    return SSL_set_mtu(ssl, mtu);
}

/* Microseconds until OpenSSL's retransmission timer expires. -1 if it does not run. */
static inline int64_t dtls_timeout(SSL *ssl) {
    struct timeval left;
    if (DTLSv1_get_timeout(ssl, &left) != 1) {
        return -1;
    }
    return (int64_t)left.tv_sec * 1000000 + left.tv_usec;
}

static inline long dtls_handle_timeout(SSL *ssl) {
    return DTLSv1_handle_timeout(ssl);
}

static inline void bio_set_retry_read(BIO *bio) {
    BIO_set_retry_read(bio);
}

static inline void bio_clear_retry_flags(BIO *bio) {
    BIO_clear_retry_flags(bio);
}

/* OpenSSL 3.0 marks its SHA-1 as deprecated in favour of EVP, whose contexts allocate each time that they begin. These
   cannot fail. */

static inline void sha1_init(SHA_CTX *state) {
    SHA1_Init(state);
}

static inline void sha1_update(SHA_CTX *state, const void *bytes, size_t count) {
    SHA1_Update(state, bytes, count);
}

static inline void sha1_final(unsigned char *sum, SHA_CTX *state) {
    SHA1_Final(sum, state);
}
