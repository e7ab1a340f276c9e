"""Server that sets a brake, until no request has come for a few seconds.

python brake_server.py & python brake_client.py
"""

import ropewalk
from ropewalk.msgs.std_srvs import SetBool

node = ropewalk.Node("base")
server = node.server("/brake", SetBool)
patience = 30.0
while (request := server.take(patience)) is not None:
    patience = 3.0
    state = "set" if request.message.data else "released"
    server.respond(request, success=True, message=f"the brake is {state}")
    print(state)
