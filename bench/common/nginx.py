"""nginx in front of several gateways: round robin, no stickiness."""

import os

from processes import is_listening, spawn, wait_until

CONF = """
worker_processes 1; daemon off; pid nginx.pid; error_log nginx.err warn; {user}
events {{ worker_connections 8192; }}
http {{
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  {http}
  upstream toolyard {{ {servers} }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ proxy_pass http://toolyard; {location} }}
  }}
}}
"""


async def start_nginx(folder, port, servers, http="access_log off;", location=""):
    """`servers` are directives of the upstream block, `http` and `location` further directives of theirs. Its logs are in the folder."""
    user = "user root;" if os.getuid() == 0 else ""
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w") as file:
        file.write(CONF.format(user=user, http=http, servers=" ".join(servers), port=port, location=location))
    process = spawn(["nginx", "-p", folder, "-e", "nginx.err", "-c", conf], os.path.join(folder, "nginx.log"))
    await wait_until(lambda: is_listening(port), 20, "nginx listens")
    return process
