// Client that sets and releases a brake.
//
//     build/brake_server & build/brake_client

#include <chrono>
#include <cstdint>
#include <iostream>

#include "ropewalk/msg/std_srvs/SetBool.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::std_srvs::SetBool;

int main() {
    auto node = ropewalk::Node::create("operator").value();
    auto client = node.client<SetBool>("/brake").value();
    client.wait_for_server(30s).value();
    SetBool::Request request;
    for (std::uint8_t data : {1, 0}) {
        request.data = data;
        auto answer = client.call(request, 30s).value();
        std::cout << answer->message << "\n";
    }
}
