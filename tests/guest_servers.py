# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts for programs that serve, watch and listen in a guest (rules: guest_scripts.py)."""

from __future__ import annotations

from typing import Final

NODE: Final = r"""
cat >main.js <<'J'
const fs = require('fs'), http = require('http'), os = require('os'), path = require('path');
const { Worker } = require('worker_threads');
const { execFile, fork } = require('child_process');
const served = new Promise((done) => {
    const server = http.createServer((ask, answer) => fs.createReadStream('served').pipe(answer));
    server.listen(0, '127.0.0.1', () => http.get({ ...server.address(), host: "127.0.0.1", agent: false }, (got) => {
        got.setEncoding('utf8');
        got.on('data', (text) => { server.close(); done('http ' + text); });
    }));
});
const overSocket = new Promise((done) => {
    const server = http.createServer((ask, answer) => answer.end('socket ' + ask.url));
    server.listen('socket', () => http.get({ socketPath: "socket", agent: false, path: '/asked' }, (got) => {
        got.on('data', (text) => { server.close(); done(String(text)); });
    }));
});
const watched = new Promise((done) => {
    fs.mkdirSync('watched');
    const watcher = fs.watch('watched', (event, name) => { watcher.close(); done(`watch ${event} ${name}`); });
    fs.writeFileSync('watched/new', '');
});
const worked = Promise.all([1, 2, 3, 4].map((number) => new Promise((done, fail) => {
    const worker = new Worker(`const { parentPort, workerData } = require('worker_threads');
        for (let n = 0; n < 200; n++) require('fs').statSync('/usr/bin/env');
        parentPort.postMessage(workerData * require('fs').readdirSync('/usr').length);`,
        { eval: true, workerData: number });
    worker.on('message', done);
    worker.on('error', fail);
})));
const started = new Promise((done) => execFile('/bin/sh', ['-c', 'readlink /proc/$$/exe'],
    (error, said) => done('child ' + said.trim())));
(async () => {
    fs.writeFileSync('served', 'served text');
    for (const one of [served, overSocket, watched, worked, started]) console.log(await one);
    await fs.promises.cp('/usr/share/doc/apt', 'copied', { recursive: true });
    console.log((await fs.promises.readdir('copied', { recursive: true })).sort().join(' '));
    console.log(fs.realpathSync('/bin/sh'), process.execPath, process.cwd() === fs.realpathSync('.'));
})();
J
printf 'served text' >served
node main.js
"""

INOTIFY: Final = r"""
mkdir -p folder/sub
ln -s folder link
cat >watch.py <<'P'
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
opened = libc.inotify_init1(os.O_NONBLOCK)
mask = 0x1 | 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # linux/inotify.h
open("folder/file", "w").close()
names = (b"folder/sub", b"link", os.path.abspath(b"link/file"))
watches = {libc.inotify_add_watch(opened, name, mask): name for name in names}
print(len(watches), min(watches) > 0)
os.rename("link/file", "folder/sub/moved"); open("folder/sub/moved").read(); os.chmod("link/sub/moved", 0o600)
open("folder/new", "w").write("x"); os.unlink("folder/new"); os.unlink("folder/sub/moved"); os.rmdir("folder/sub")
text, at = os.read(opened, 1 << 16), 0
while at < len(text):
    watch, what, cookie, length = struct.unpack_from("iIII", text, at)
    print(watches[watch].rsplit(b"/")[-1], hex(what), bool(cookie), text[at + 16 : at + 16 + length].rstrip(b"\0"))
    at += 16 + length
P
python3 watch.py
"""

SOCKETS: Final = r"""
cat >talk.py <<'P'
import array, os, socket, socketserver, threading
class Upper(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline().upper())
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    pass
server = Server("server", Upper)
serving = threading.Thread(target=server.serve_forever)
serving.start()
os.symlink("server", "link")
for name in ("server", os.path.abspath("server"), "./link"):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(name)
        client.sendall(b"hello\n")
        print(client.recv(99), client.getpeername() == "server")
server.shutdown()
serving.join()
server.server_close()
left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.makedirs("given/deep")
open("given/deep/file", "w").write("by descriptor")
if os.fork() == 0:
    os.chdir("/")
    got, data, *_ = right.recvmsg(9, 99)
    fd = array.array("i", data[0][2])[0]
    print(got, os.readlink(f"/proc/self/fd/{fd}").endswith("/given"))
    print(open(os.open("deep/file", 0, dir_fd=fd)).read(), flush=True)
    os.fchdir(fd)
    print(os.getcwd().endswith("/given"), os.stat("../given/./deep").st_nlink, flush=True)
    os._exit(0)
folder = os.open("given", os.O_RDONLY)
left.sendmsg([b"folder"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [folder]))])
print(os.wait()[1])
P
python3 talk.py
dbus-run-session -- sh -c '
    dbus-send --session --print-reply=literal --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames
    dbus-send --session --print-reply=literal --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetConnectionUnixUser \
        string:org.freedesktop.DBus' 2>errors
grep -v 'fd limit' errors || true
rm errors
"""

# The X server runs xkbcomp, makes a socket and a lock; a client's set-up request is answered (X11 protocol, 8).
DISPLAY: Final = r"""
cat >client.py <<'P'
import os, socket, struct, subprocess
read, write = os.pipe()
server = subprocess.Popen(
    ["Xvfb", "-displayfd", str(write), "-nolisten", "tcp", "-noreset", "-screen", "0", "64x48x24"],
    pass_fds=[write], stderr=subprocess.DEVNULL)
os.close(write)
number = int(os.read(read, 9))
with socket.socket(socket.AF_UNIX) as client:
    client.connect(f"/tmp/.X11-unix/X{number}")
    client.sendall(struct.pack("<cxHHHHxx", b"l", 11, 0, 0, 0))
    print(struct.unpack_from("<BxHHH", client.recv(8)), client.getpeername() == f"/tmp/.X11-unix/X{number}")
server.terminate()
print(server.wait(), os.path.exists(f"/tmp/.X11-unix/X{number}"))
P
python3 client.py
"""

SERVING: Final = {"node": NODE, "inotify": INOTIFY, "sockets": SOCKETS, "display": DISPLAY}
