import Glibc

func exponentialFunction(_ value: Double) -> Double { exp(value) }
func naturalLogarithm(_ value: Double) -> Double { log(value) }
