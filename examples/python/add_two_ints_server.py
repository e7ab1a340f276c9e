"""Server that adds two numbers, until no request has come for a few seconds.

python add_two_ints_server.py & python add_two_ints_client.py
"""

import ropewalk

node = ropewalk.Node("adder")
# Types of installed packages are found by name; this one is defined here.
add_two_ints = ropewalk.ServiceType("rospy_tutorials/AddTwoInts", "int64 a\nint64 b\n---\nint64 sum\n")
server = node.server("/add_two_ints", add_two_ints)
patience = 30.0
while (request := server.take(patience)) is not None:
    patience = 3.0
    total = request.message.a + request.message.b
    if not -(2**63) <= total < 2**63:
        # The client gets this text as its error.
        server.reject(request, "the sum does not fit into 64 bits")
        continue
    server.respond(request, sum=total)
    print(f"answered {total}")
