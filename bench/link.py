"""A relay on loopback that behaves like a link: a rate, and a delay in each direction. Whole buffers wait, so TCP never
starts slowly. The kernel's own (netem) needs a module.

usage: link.py PORT TARGET_PORT BITS_PER_SECOND ONE_WAY_SECONDS
"""
import asyncio
import sys
import time


class Link:
    def __init__(self, target_port, bits_per_second, one_way_seconds):
        self.target_port, self.rate, self.delay = target_port, bits_per_second / 8, one_way_seconds
        # All connections share the link. The time at which it has sent everything so far, per direction.
        self.free = {"up": 0.0, "down": 0.0}

    async def listen(self, port):
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        async with server:
            await server.serve_forever()

    async def _serve(self, reader, writer):
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        # The handshake takes a round trip.
        await asyncio.sleep(2 * self.delay)
        ways = [(reader, there_writer, "up"), (there_reader, writer, "down")]
        pumps = [asyncio.create_task(self._pump(*way)) for way in ways]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_EXCEPTION)
        for pump in pumps:
            pump.cancel()
        for one in (writer, there_writer):
            one.close()

    async def _pump(self, reader, writer, direction):
        queue = asyncio.Queue()
        sender = asyncio.create_task(_send(queue, writer))
        while True:
            try:
                data = await reader.read(16384)
            except ConnectionError:
                data = b""
            now = time.monotonic()
            self.free[direction] = max(self.free[direction], now) + len(data) / self.rate
            queue.put_nowait((self.free[direction] + self.delay, data))
            if not data or sender.done():
                break
            # The sender sees that the link is full.
            if self.free[direction] - now > 0.02:
                await asyncio.sleep(self.free[direction] - now - 0.01)
        await sender


async def _send(queue, writer):
    while True:
        due, data = await queue.get()
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        if not data:
            if writer.can_write_eof():
                writer.write_eof()
            return
        writer.write(data)
        await writer.drain()


port, target_port, bits_per_second, one_way_seconds = sys.argv[1:]
asyncio.run(Link(int(target_port), float(bits_per_second), float(one_way_seconds)).listen(int(port)))
