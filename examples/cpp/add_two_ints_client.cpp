// Client that asks the server to add two numbers.
//
//     build/add_two_ints_server &  build/add_two_ints_client

#include <chrono>
#include <cstdint>
#include <iostream>
#include <utility>

#include "ropewalk/msg/rospy_tutorials/AddTwoInts.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::rospy_tutorials::AddTwoInts;

int main() {
    auto node = ropewalk::Node::create("asker").value();
    auto client = node.client<AddTwoInts>("/add_two_ints").value();
    client.wait_for_server(30s).value();
    const std::pair<std::int64_t, std::int64_t> sums[] = {{1, 2}, {40, 2}, {INT64_MAX, 1}};
    for (auto [a, b] : sums) {
        AddTwoInts::Request request;
        request.a = a;
        request.b = b;
        auto answer = client.call(request, 30s);
        if (answer) {
            std::cout << a << " + " << b << " = " << (*answer)->sum << "\n";
        } else {
            std::cout << a << " + " << b << ": " << answer.error().text() << "\n";
        }
    }
}
