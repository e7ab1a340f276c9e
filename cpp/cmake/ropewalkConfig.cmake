# find_package(ropewalk) provides the targets ropewalk::ropewalk (shared) and ropewalk::static, and the
# function ropewalk_generate_messages.

get_filename_component(ROPEWALK_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(ROPEWALK_INCLUDE_DIR "${ROPEWALK_PREFIX}/include")
set(ROPEWALK_EXECUTABLE "${ROPEWALK_PREFIX}/bin/ropewalk")

find_package(Threads REQUIRED)
# The static library needs ZeroMQ, unless it was built without it (Debian: libzmq3-dev).
find_library(ROPEWALK_ZMQ zmq)
if(NOT ROPEWALK_ZMQ)
  set(ROPEWALK_ZMQ "")
endif()

if(NOT TARGET ropewalk::ropewalk)
  add_library(ropewalk::ropewalk SHARED IMPORTED)
  set_target_properties(ropewalk::ropewalk PROPERTIES
    IMPORTED_LOCATION "${ROPEWALK_PREFIX}/lib/libropewalk.so.0"
    IMPORTED_SONAME "libropewalk.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${ROPEWALK_INCLUDE_DIR}"
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_LINK_LIBRARIES Threads::Threads)

  add_library(ropewalk::static STATIC IMPORTED)
  set_target_properties(ropewalk::static PROPERTIES
    IMPORTED_LOCATION "${ROPEWALK_PREFIX}/lib/libropewalk.a"
    INTERFACE_INCLUDE_DIRECTORIES "${ROPEWALK_INCLUDE_DIR}"
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${ROPEWALK_ZMQ};${CMAKE_DL_LIBS};m")
endif()

include("${CMAKE_CURRENT_LIST_DIR}/ropewalkMessages.cmake")
