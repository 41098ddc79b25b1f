# A right endpoint that handles one request after the other, each for a while. It knows a payout by the merchant's id,
# books by one conditional step, and never reads the service's id. What it does not read it does not check.
#
# Verdict by reading: nothing is wrong. A body without `data.id` is booked once, so it is not lost. Less strict than
# `other-amount` and `undocumented` ask.
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

turn = threading.Lock()
states = {}
outcomes = {'transfer.success': ('SUCCESS', 'paid'), 'transfer.failed': ('FAILED', 'refund')}


def handle(body):
    callback = json.loads(body)
    event, data = callback['event'], callback['data']
    status, entry = outcomes[event]
    external_id = data['externalId']
    if data['status'] != status or not isinstance(external_id, str):
        return 400
    with open(os.environ['PAYOUTS']) as payouts:
        if external_id not in payouts.read().split():
            return 404
    if external_id in states:
        return 200 if states[external_id] == status else 409
    with open(os.environ['LEDGER'], 'a') as ledger:
        ledger.write(f'{external_id} {entry}\n')
    states[external_id] = status
    return 200


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        with turn:
            time.sleep(0.25)
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
