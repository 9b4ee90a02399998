// A cuBLASLt without functions, for the folder of the stand-in: the real one would call a driver that is not there.
typedef int gk_fake_cublaslt_has_no_functions;
