internal import Glibc

/// The functions of libm that the estimators need.
func power(_ base: Double, _ exponent: Double) -> Double { pow(base, exponent) }
func logarithm(_ value: Double) -> Double { log(value) }
