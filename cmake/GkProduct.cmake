# What programs and tests link against. gk_product is the static libraries, or in a bundle one shared library of
# all of them, so that six binaries do not each carry a copy of LLVM. gk (GK_SHARED_LIB) is the public libgk.so:
# LLVM inside and hidden, so that a host program with an LLVM of its own does not clash, and nothing exported but
# what cmake/gk.map names.
set(gk_parts)
foreach(part gk_base gk_program gk_ir gk_interp gk_passes gk_syntax gk_antlr gk_codegen gk_runtime gk_sema gk_formats gk_engine
             gk_libdevice)
  if(TARGET ${part})
    get_target_property(kind ${part} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      list(APPEND gk_parts ${part})
    endif()
  endif()
endforeach()

# gk_whole(TARGET): a shared library of every part's objects and what they need from elsewhere.
function(gk_whole target)
  set(objects)
  foreach(part IN LISTS gk_parts)
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
  endforeach()
  add_library(${target} SHARED ${objects})
  target_link_libraries(${target} PRIVATE gk_llvm gk_blas fmt::fmt TBB::tbb ZLIB::ZLIB ${GK_RE2} ${GK_ANTLR_RUNTIME}
                        ${CMAKE_DL_LIBS} Threads::Threads)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

if(GK_BUNDLE)
  gk_whole(gk_inner)
  # LLVM's own symbols stay inside, and what is not used of it is dropped.
  file(GLOB llvm_archives RELATIVE ${LLVM_LIBRARY_DIR} ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  string(REPLACE ";" ":" llvm_archives "${llvm_archives}")
  target_link_options(gk_inner PRIVATE -Wl,--exclude-libs,${llvm_archives})
  add_library(gk_product INTERFACE)
  target_link_libraries(gk_product INTERFACE gk_inner fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB)
else()
  add_library(gk_product INTERFACE)
  target_link_libraries(gk_product INTERFACE gk_engine)
endif()

if(GK_SHARED_LIB)
  gk_whole(gk)
  set_target_properties(gk PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 EXPORT_NAME gk
                        LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/gk.map)
  target_include_directories(gk PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(gk INTERFACE cxx_std_20)
  target_link_options(gk PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/gk.map)
  include(GkInstall)
endif()
