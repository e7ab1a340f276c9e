// Zero-copy topics and services on one host, in C++17: docs/guide/cpp.md.
#pragma once

#include "node.hpp"
#include "service.hpp"
