// Zero-copy topics for roscpp: docs/guide/ros1-zero-copy.md.
#pragma once

#include "publisher.hpp"
#include "subscriber.hpp"
