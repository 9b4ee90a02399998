# OpenBLAS, for the host's matrix products: defines gk_blas (header cblas.h and library).
find_path(GK_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas x86_64-linux-gnu x86_64-linux-gnu/openblas-pthread REQUIRED)
find_library(GK_OPENBLAS openblas REQUIRED)
add_library(gk_blas INTERFACE)
target_include_directories(gk_blas SYSTEM INTERFACE ${GK_CBLAS_INCLUDE})
target_link_libraries(gk_blas INTERFACE ${GK_OPENBLAS})
