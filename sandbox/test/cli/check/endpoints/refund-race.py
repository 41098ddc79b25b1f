# A success is booked once, under a lock. A failure is looked up, and then refunded after a query: two copies that come
# together refund twice. One copy after the other does no harm.
#
# Verdict by reading: concurrent copies of a failure are wrong, and nothing else.
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
paid = set()
refunded = set()


def write(external_id, entry):
    with lock, open(os.environ['LEDGER'], 'a') as ledger:
        ledger.write(f'{external_id} {entry}\n')


def succeed(data):
    with lock:
        if data['id'] in paid:
            return 200
        paid.add(data['id'])
    write(data['externalId'], 'paid')
    return 200


def fail(data):
    if data['id'] in refunded:
        return 200
    time.sleep(0.1)  # reads the balance
    write(data['externalId'], 'refund')
    refunded.add(data['id'])
    return 200


def handle(body):
    callback = json.loads(body)
    event, data = callback['event'], callback['data']
    if not isinstance(data['id'], str) or not isinstance(data['externalId'], str):
        return 400
    if (event, data['status']) == ('transfer.success', 'SUCCESS'):
        return succeed(data)
    if (event, data['status']) == ('transfer.failed', 'FAILED'):
        return fail(data)
    return 400


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        try:
            status = handle(body)
        except (ValueError, KeyError, TypeError):
            status = 400
        self.send_response(status)
        self.send_header('content-length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(('127.0.0.1', 0), Endpoint)
# Ten connections that are opened together must not be refused.
server.socket.listen(50)
print(f'http://127.0.0.1:{server.server_address[1]}', flush=True)
server.serve_forever()
