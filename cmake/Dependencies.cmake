# Everything the engine links comes from the distribution's packages; tools/install-packages.sh names them.
find_package(Threads REQUIRED)
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(simdjson REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CURL REQUIRED)
find_package(CLI11 REQUIRED)

# OpenBLAS, the pthread build without threads of its own: loaded at run time by the first product (src/kernels/blas.cc), so that only its header and its place are
# needed here.
find_library(OPENBLAS_PTHREAD_LIBRARY NAMES libopenblas.so.0 PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread NO_DEFAULT_PATH)
if(NOT OPENBLAS_PTHREAD_LIBRARY)
  set(OPENBLAS_PTHREAD_LIBRARY libopenblas.so.0)
endif()
find_path(OPENBLAS_PTHREAD_INCLUDE_DIR cblas.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread
  ${CMAKE_LIBRARY_ARCHITECTURE} openblas REQUIRED)
add_library(openblas INTERFACE)
target_include_directories(openblas SYSTEM INTERFACE ${OPENBLAS_PTHREAD_INCLUDE_DIR})
target_compile_definitions(openblas INTERFACE CGCN_OPENBLAS="${OPENBLAS_PTHREAD_LIBRARY}")

find_library(METIS_LIBRARY NAMES metis REQUIRED)
find_path(METIS_INCLUDE_DIR metis.h REQUIRED)
add_library(metis INTERFACE)
target_include_directories(metis SYSTEM INTERFACE ${METIS_INCLUDE_DIR})
target_link_libraries(metis INTERFACE ${METIS_LIBRARY})

find_library(HWY_LIBRARY NAMES hwy REQUIRED)
find_path(HWY_INCLUDE_DIR hwy/highway.h REQUIRED)
add_library(highway INTERFACE)
target_include_directories(highway SYSTEM INTERFACE ${HWY_INCLUDE_DIR})
target_link_libraries(highway INTERFACE ${HWY_LIBRARY})

find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY NAMES xxhash REQUIRED)
add_library(xxhash INTERFACE)
target_include_directories(xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
target_link_libraries(xxhash INTERFACE ${XXHASH_LIBRARY})

# Chart.js for the report, embedded in the program. Version 3 and 4 have the same interface for what the page uses.
find_file(CHARTJS_FILE NAMES chart.umd.min.js chart.umd.js chart.min.js Chart.min.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH)
if(NOT CHARTJS_FILE)
  message(FATAL_ERROR "Chart.js was not found in /usr/share/javascript/chart.js.\n"
    "  try: tools/install-packages.sh (package libjs-chart.js), or -DCHARTJS_FILE=PATH of its minified browser build")
endif()
file(READ ${CHARTJS_FILE} chartjs_head LIMIT 400)
if(NOT chartjs_head MATCHES "Chart\\.js v[34]\\.")
  message(FATAL_ERROR "${CHARTJS_FILE} is not version 3 or 4 of Chart.js.\n  try: -DCHARTJS_FILE=PATH of one that is")
endif()

if(CGCN_TESTS)
  find_package(GTest REQUIRED)
  find_path(SIMDE_INCLUDE_DIR simde/x86/avx512.h REQUIRED)  # libsimde-dev
endif()
if(CGCN_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
