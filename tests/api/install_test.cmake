# Installs the library into the build folder, builds examples/embed against what was installed and nothing else,
# by find_package and by pkg-config, and runs both programs. Given: BUILD, SOURCE, CXX, CC.
set(prefix ${BUILD}/install)
set(program ${BUILD}/embed)
file(REMOVE_RECURSE ${prefix} ${program})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\ngave ${result}:\n${out}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component library)
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/embed -B ${program} -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${program})
run(${program}/embed host)
run(${program}/embed_c host)

find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE pc ${prefix}/*/gk.pc)
  get_filename_component(folder ${pc} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  execute_process(COMMAND ${pkg_config} --cflags --libs gk OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run(${CC} -std=c11 ${SOURCE}/examples/embed/main.c -o ${program}/by_pkg_config ${flags})
  get_filename_component(library_folder ${folder} DIRECTORY)
  set(ENV{LD_LIBRARY_PATH} ${library_folder})
  run(${program}/by_pkg_config host)
endif()
