"""A DNS server on loopback that answers as it is told to: well, badly or not at all."""

import socket
import struct
import threading

SRV, A = 33, 1
NO_NAME, FAILURE = 3, 2
DATAGRAM_MAX = 512


def encoded(name):
    labels = [label.encode() for label in name.rstrip(".").split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def record(owner, kind, ttl, body):
    return owner + struct.pack(">HHIH", kind, 1, ttl, len(body)) + body


def both_of_one_port():
    """A listening socket, and one for datagrams. A port that is free for one of them may be taken for the other."""
    for _ in range(20):
        streams = socket.create_server(("127.0.0.1", 0))
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            datagrams.bind(streams.getsockname())
        except OSError:
            streams.close()
            datagrams.close()
        else:
            return streams, datagrams
    raise OSError("no port is free for TCP and UDP")


class DnsServer:
    """Answers for `name` with `records`, pairs of a host and a port, and for each host in `addresses`. `mode` says how."""

    def __init__(self, name):
        self.name, self.records, self.addresses, self.ttl = name, [], {}, 0
        self.mode, self.asked, self.asked_over_tcp = "well", 0, 0
        self.streams, self.datagrams = both_of_one_port()
        self.port = self.streams.getsockname()[1]
        for work in (self.serve_datagrams, self.serve_streams):
            threading.Thread(target=work, daemon=True).start()

    def answer(self, query):
        """The answer to a query, or nothing."""
        end = query.index(b"\0", 12) + 1
        question, kind = query[12 : end + 4], struct.unpack(">H", query[end : end + 2])[0]
        asked, at = [], 12
        while query[at]:
            asked.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        asked = ".".join(asked)
        code, answers, more = 0, [], []
        if self.mode == "fails":
            code = FAILURE
        elif kind == SRV and asked == self.name:
            for host, port in self.records:
                body = struct.pack(">HHH", 0, 0, port) + encoded(host)
                answers.append(record(b"\xc0\x0c", SRV, self.ttl, body))
        elif kind == A and asked in self.addresses:
            answers.append(record(b"\xc0\x0c", A, self.ttl, socket.inet_aton(self.addresses[asked])))
        elif asked != self.name and asked not in self.addresses:
            code = NO_NAME
        counts = struct.pack(">HHHH", 1, len(answers), 0, len(more))
        return query[:2] + struct.pack(">H", 0x8180 | code) + counts + question + b"".join(answers + more)

    def serve_datagrams(self):
        while True:
            query, client = self.datagrams.recvfrom(4096)
            self.asked += 1
            answer = self.answer(query)
            if self.mode == "silent":
                continue
            if self.mode == "garbage":
                answer = query[:2] + b"\x81\x80" + b"\xff" * 400
            elif self.mode == "loops":
                # A name that points at itself.
                answer = query[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, 1, 0, 0) + query[12:] + b"\xc0" + bytes([len(query)]) * 20
            elif self.mode == "cut in the middle":
                answer = answer[: len(answer) * 2 // 3]
            elif self.mode == "foreign":
                for wrong in range(100):
                    self.datagrams.sendto(struct.pack(">H", wrong) + answer[2:], client)
                continue
            elif self.mode == "cut" or len(answer) > DATAGRAM_MAX:
                end = query.index(b"\0", 12) + 5
                answer = answer[:2] + b"\x83\x80" + struct.pack(">HHHH", 1, 0, 0, 0) + query[12:end]
            self.datagrams.sendto(answer, client)

    def serve_streams(self):
        while True:
            stream, _ = self.streams.accept()
            with stream:
                self.asked_over_tcp += 1
                length = struct.unpack(">H", stream.recv(2))[0]
                answer = self.answer(stream.recv(length))
                if self.mode != "cut":
                    stream.sendall(struct.pack(">H", len(answer)) + answer)
