// Server that sets a brake, until no request has come for a few seconds.
//
//     build/brake_server & build/brake_client

#include <chrono>
#include <iostream>
#include <string>
#include <utility>

#include "ropewalk/msg/std_srvs/SetBool.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::std_srvs::SetBool;

int main() {
    auto node = ropewalk::Node::create("base").value();
    auto server = node.server<SetBool>("/brake").value();
    ropewalk::Timeout patience = 30s;
    while (auto request = server.take(patience)) {
        patience = 3s;
        // A `bool` is a byte.
        const std::string state = (*request)->data != 0 ? "set" : "released";
        SetBool::Response answer;
        answer.success = 1;
        answer.message = "the brake is " + state;
        if (auto sent = server.respond(std::move(*request), answer); !sent) {
            std::cerr << sent.error().text() << "\n";
            continue;
        }
        std::cout << state << "\n";
    }
}
