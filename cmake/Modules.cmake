# Several sources are compiled as one, which parses the headers once: a build from nothing takes less than half the time. Names in
# anonymous namespaces must then be unique within a module. Off in the debug preset, where single files change.
option(CGCN_UNITY "Compile several sources as one" ON)
function(cgcn_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${CGCN_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  # A type that one of the joined sources has to itself is taken for one that a header has.
  target_compile_options(${target} PRIVATE $<$<AND:$<BOOL:${CGCN_UNITY}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
endfunction()

# One static library per folder of src/. Dependencies point downward only: a cycle fails at configure time because a
# module may only name modules that exist already (src/CMakeLists.txt adds the folders bottom up).
function(cgcn_module name)
  cmake_parse_arguments(ARG "" "" "USES;LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  add_library(cgcn_${name} STATIC ${sources})
  target_include_directories(cgcn_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  foreach(used ${ARG_USES})
    if(NOT TARGET cgcn_${used})
      message(FATAL_ERROR "module ${name} uses ${used}, which lies above it or does not exist")
    endif()
    target_link_libraries(cgcn_${name} PUBLIC cgcn_${used})
  endforeach()
  target_link_libraries(cgcn_${name} PUBLIC ${ARG_LINKS})
  cgcn_unity(cgcn_${name})
endfunction()

# The tests of one module: tests/<name>/*.cc in one binary, one ctest entry per test case.
function(cgcn_tests name)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  add_executable(test_${name} ${sources})
  foreach(used ${name} ${ARG_USES})
    target_link_libraries(test_${name} PRIVATE cgcn_${used})
  endforeach()
  # What they test is optimised; they themselves need to compile fast.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(test_${name} PRIVATE cgcn_test_support GTest::gtest GTest::gmock GTest::gtest_main)
  cgcn_unity(test_${name})
  gtest_discover_tests(test_${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 180 LABELS ${name})
endfunction()
