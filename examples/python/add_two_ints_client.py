"""Client that asks the server to add two numbers.

python add_two_ints_server.py & python add_two_ints_client.py
"""

import ropewalk

node = ropewalk.Node("asker")
# The type comes from the server.
client = node.client("/add_two_ints", timeout=30)
client.wait_for_server(30)
for a, b in [(1, 2), (40, 2), (2**63 - 1, 1)]:
    try:
        print(f"{a} + {b} = {client.call(a=a, b=b, timeout=30).sum}")
    except ropewalk.Error as error:
        print(f"{a} + {b}: {error}")
