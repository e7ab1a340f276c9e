"""Client that sets and releases a brake.

python brake_server.py & python brake_client.py
"""

import ropewalk
from ropewalk.msgs.std_srvs import SetBool

node = ropewalk.Node("operator")
client = node.client("/brake", SetBool)
client.wait_for_server(30)
for data in (True, False):
    print(client.call(data=data, timeout=30).message)
