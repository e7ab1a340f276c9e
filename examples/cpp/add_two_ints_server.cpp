// Server that adds two numbers, until no request has come for a few seconds.
//
//     build/add_two_ints_server &  build/add_two_ints_client

#include <chrono>
#include <iostream>

#include "ropewalk/msg/rospy_tutorials/AddTwoInts.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::rospy_tutorials::AddTwoInts;

int main() {
    auto node = ropewalk::Node::create("adder").value();
    auto server = node.server<AddTwoInts>("/add_two_ints").value();
    ropewalk::Timeout patience = 30s;
    while (auto request = server.take(patience)) {
        patience = 3s;
        AddTwoInts::Response answer;
        if (__builtin_add_overflow((*request)->a, (*request)->b, &answer.sum)) {
            // The client gets this text as its error.
            (void)server.reject(std::move(*request), "the sum does not fit into 64 bits");
            continue;
        }
        if (auto reported = server.respond(std::move(*request), answer); !reported) {
            std::cerr << reported.error().text() << "\n";
            continue;
        }
        std::cout << "answered " << answer.sum << "\n";
    }
}
