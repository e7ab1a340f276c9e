# ropewalk_generate_messages(TARGET
#     [TYPES sensor_msgs/Image std_srvs/SetBool ...]   names, of the standard packages or found in PATHS
#     [FILES msg/Blob.msg ...]                         definitions, rebuilt when they change
#     [PACKAGES my_msgs ...]                           folders of packages, or folders of these
#     [PATHS ../ ...]                                  folders where types in the others are looked for
#     [ROS2])                                          definitions are ROS 2's
#
# Creates the interface library TARGET. Targets that link it can include "ropewalk/msg/PACKAGE/TYPE.hpp", and also get
# ropewalk::ropewalk.
function(ropewalk_generate_messages target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ROS2" "" "TYPES;FILES;PACKAGES;PATHS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ropewalk_generate_messages: ${arg_UNPARSED_ARGUMENTS} does not belong to any of TYPES, FILES, PACKAGES, PATHS")
  endif()
  if(NOT arg_TYPES AND NOT arg_FILES AND NOT arg_PACKAGES)
    message(FATAL_ERROR "ropewalk_generate_messages: name TYPES, FILES or PACKAGES")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}")
  set(command "${ROPEWALK_EXECUTABLE}" gen cpp --output "${folder}")
  if(arg_ROS2)
    list(APPEND command --ros2)
  endif()
  foreach(path IN LISTS arg_PATHS)
    get_filename_component(path "${path}" ABSOLUTE)
    list(APPEND command --path "${path}")
  endforeach()
  set(inputs "${ROPEWALK_EXECUTABLE}")
  foreach(path IN LISTS arg_FILES)
    get_filename_component(path "${path}" ABSOLUTE)
    list(APPEND command "${path}")
    list(APPEND inputs "${path}")
  endforeach()
  foreach(path IN LISTS arg_PACKAGES)
    get_filename_component(path "${path}" ABSOLUTE)
    list(APPEND command "${path}")
    file(GLOB_RECURSE found CONFIGURE_DEPENDS "${path}/*.msg" "${path}/*.srv")
    list(APPEND inputs ${found})
  endforeach()
  list(APPEND command ${arg_TYPES})

  set(stamp "${folder}/made")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND ${command}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${inputs}
    COMMENT "Generating messages of ${target}"
    VERBATIM)
  add_custom_target(${target}_made DEPENDS "${stamp}")
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_made)
  target_include_directories(${target} INTERFACE "${folder}")
  target_link_libraries(${target} INTERFACE ropewalk::ropewalk)
endfunction()
