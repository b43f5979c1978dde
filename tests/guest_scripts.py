# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts for real programs in a guest: each works in its own folder and prints what does not change from run to run.

They are run by bash with `-eu` in an empty folder, which is HOME and TMPDIR as well. What they leave in it is compared
too, but for times of change that are not old.
"""

from __future__ import annotations

from typing import Final

from guest_servers import SERVING

GCC: Final = r"""
cat >lib.c <<'C'
int twice(int n) { return 2 * n; }
C
cat >main.c <<'C'
#include <stdio.h>
int twice(int n);
int main(void) { printf("%d\n", twice(21)); return 0; }
C
gcc -shared -fPIC -o libtwice.so lib.c
gcc -o by-name main.c -L. -ltwice -Wl,-rpath,"$PWD"
gcc -static -o static main.c lib.c
gcc -static-pie -o static-pie main.c lib.c
gcc -no-pie -o fixed main.c lib.c
for program in by-name static static-pie fixed; do ./$program; ./../"${PWD##*/}"/$program; done
"""

# Many short processes at once, each through a compiler's wrapper, as ccache's users have it.
MAKE: Final = r"""
mkdir bin src
printf '#!/bin/sh\nexec /usr/bin/gcc "$@"\n' >bin/cc
chmod +x bin/cc
ln -s cc bin/wrapped
for n in $(seq 60); do echo "int f$n(void) { return $n; }" >src/f$n.c; done
{ echo '#include <stdio.h>'; for n in $(seq 60); do echo "int f$n(void);"; done
  echo 'int main(void) { int sum = 0;'; for n in $(seq 60); do echo "sum += f$n();"; done
  echo 'printf("%d\n", sum); return 0; }'; } >src/main.c
cat >Makefile <<'M'
CC = ./bin/wrapped
objects = $(patsubst src/%.c,%.o,$(wildcard src/*.c))
sum: libf.a
	$(CC) -o $@ -Wl,--whole-archive libf.a -Wl,--no-whole-archive
libf.a: $(sort $(objects))
	ar rcD $@ $^
%.o: src/%.c
	$(CC) -c -o $@ $<
M
make --silent -j4
./sum
make --silent -j4 -q && echo up to date
"""

GIT: Final = r"""
export GIT_AUTHOR_DATE='@1000000000 +0000' GIT_COMMITTER_DATE='@1000000000 +0000'
git config --global user.email a@b
git config --global user.name n
git config --global init.defaultBranch main
git config --global pack.threads 1
git init -q a
cp -r /usr/share/doc/dpkg /usr/share/doc/apt a
ln -s dpkg a/link
chmod +x a/dpkg/copyright
git -C a add .
git -C a -c gc.auto=0 commit -qm one
git clone -q a b
git clone -q --no-local a far
git clone -q --shared a near
(
    cd b
    mv apt moved
    echo more >>moved/copyright
    git status --porcelain
    git add -A
    git commit -qm two
    git checkout -q -b side HEAD~1
    echo side >side
    git add side
    git commit -qm side
    git merge -q -m merged main
    git stash list
    git worktree add -q ../tree main 2>&1
    git gc -q
    git fsck 2>&1
    git push -q origin side
    git log --format='%h %p %s' --graph
    git status
)
git -C a branch -a
git -C b cat-file --batch-all-objects --batch-check
git -C tree ls-files -s
git -C far diff --stat HEAD
git -C near rev-parse HEAD
rm -rf a b far near tree
"""

TAR: Final = r"""
mkdir -p tree/deep/er
echo file >tree/file
ln tree/file tree/deep/hard
ln -s ../file tree/deep/link
ln -s /usr/bin/env tree/absolute
ln -s nowhere tree/dangling
mkfifo tree/fifo
truncate -s 3M tree/sparse
printf x | dd of=tree/sparse bs=1 seek=1M conv=notrunc status=none
setfattr -n user.test -v value tree/file
setfattr -n user.folder -v of-a-folder tree/deep
chmod 4751 tree/file
chmod 0500 tree/deep/er
touch -d @1000000000 tree/deep/er tree/deep tree/file tree/fifo tree/sparse
touch -h -d @1000000000 tree/deep/link tree/absolute tree/dangling
touch -d @1000000000 tree
tar --xattrs --xattrs-include='user.*' --sparse --sort=name -cf a.tar tree
tar --xattrs -tvf a.tar
mkdir out
tar --xattrs --xattrs-include='user.*' -xpf a.tar -C out
stat -c '%n %b %s %h %a' out/tree/*
getfattr -h -d -R out
tar -czf b.tar.gz -C / usr/share/doc
mkdir again
tar -xf b.tar.gz -C again
diff -r --no-dereference /usr/share/doc again/usr/share/doc
tar -df b.tar.gz -C again
rm a.tar b.tar.gz
"""

COPIES: Final = r"""
mkdir tree place
cp -a /usr/share/perl5 /usr/include/x86_64-linux-gnu tree
mv tree/x86_64-linux-gnu place/moved
mv -T tree place/tree
cp -al place linked
find linked -type f -links 2 | wc -l
cp -as "$PWD/place/moved" links
find -L links -type f | wc -l
mv -n linked place
find place -depth -name '*.h' -execdir mv {} {}.renamed \;
find place -name '*.renamed' | sort | md5sum
rm -r place/linked links
diff -r /usr/include/x86_64-linux-gnu place/moved | wc -l
rm -rf place/moved/asm
chmod -R go-w place
du -a --apparent-size place | sort -k2 | md5sum
install -D -m 0640 /usr/include/stdio.h new/folder/name
"""

RSYNC: Final = r"""
mkdir from
cp -a /usr/share/doc/apt from
ln from/apt/copyright from/hard
ln -s apt from/link
setfattr -n user.test -v value from/hard
rsync -aHX --out-format=%n from/ to | sort
echo changed >>from/apt/copyright
rm from/link
rsync -aHX --delete --itemize-changes from/ to | grep -v ' ./$' | cut -c2-4,12- | sort
rsync -aHXc --dry-run --itemize-changes from/ to
"""

FIND: Final = r"""
find / -xdev \( -path /sys -o -path /proc -o -path /dev -o -path /mnt -o -path /tmp -o -path /run \) -prune \
    -o -printf '%p %y %Y %m %s %l %n\n' | sort | md5sum
find /usr /etc -xtype l | sort
find /usr/lib -samefile /bin/sh
find -L /usr/bin -maxdepth 1 -type f -perm -4000 | sort
ls -lAR --time-style=+ /etc /usr/lib | md5sum
"""

SQLITE: Final = r"""
cat >writer.py <<'P'
import sqlite3, sys
base = sqlite3.connect("wal.db", timeout=60, isolation_level=None)
for n in range(50):
    base.execute("begin immediate")
    base.execute("insert into t select ?, count(*) from t", (sys.argv[1],))
    base.execute("commit")
P
sqlite3 wal.db 'pragma journal_mode=wal; create table t(writer, before);'
for writer in 1 2 3; do python3 writer.py $writer & done
wait
sqlite3 wal.db 'select writer, count(*) from t group by writer; select count(distinct before) from t;
    pragma integrity_check; pragma journal_mode;'
ls
sqlite3 other.db 'create table u(a); insert into u values(1),(2);'
sqlite3 wal.db "attach 'other.db' as o; begin; insert into o.u select before from t where before < 3; commit;
    select sum(a) from o.u; vacuum into 'copy.db';"
sqlite3 copy.db 'select count(*) from t'
flock lock sh -c 'flock --nonblock lock true || echo locked'
rm -- *.db*
"""

PYTHON: Final = r"""
python3 -m venv --without-pip environment
environment/bin/python - <<'P'
import sys, os
print(sys.prefix, sys.base_prefix, sys.executable, os.path.realpath(sys.executable))
import bz2, ctypes, curses, decimal, lzma, readline, sqlite3, ssl, uuid, zoneinfo
print(zoneinfo.ZoneInfo("Europe/Berlin").key, len(ssl.create_default_context().get_ca_certs()) >= 0)
P
cat >pools.py <<'P'
import multiprocessing, os, pathlib, shutil, tempfile
def name(path):
    return os.path.realpath(path)
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, sorted(set(pool.map(name, ["/bin/sh", "/bin", "/proc/self/root/usr"] * 5))))
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        workers = [multiprocessing.Process(target=shared.__setitem__, args=(n, n * n)) for n in range(5)]
        [worker.start() for worker in workers]
        [worker.join() for worker in workers]
        print(dict(sorted(shared.items())))
    with tempfile.TemporaryDirectory() as folder:
        deep = pathlib.Path(folder, *"abcdef")
        deep.mkdir(parents=True)
        (deep / "file").write_text("x")
        shutil.copytree(folder, "copy", dirs_exist_ok=True)
        print(sorted(str(path) for path in pathlib.Path("copy").rglob("*")))
P
python3 pools.py
python3 -m zipfile -c doc.zip /usr/share/doc/apt
python3 -m zipfile -l doc.zip | cut -c1-40 | sort
rm doc.zip
environment/bin/python -m compileall -q --invalidation-mode unchecked-hash pools.py
"""

PERL: Final = r"""
perl -e '
use strict; use File::Find; use File::Copy; use Cwd qw(getcwd abs_path); use IO::Socket::UNIX; use Fcntl ":flock";
my $count = 0; find(sub { $count++ if -f }, "/usr/share/perl"); print "$count\n";
copy("/etc/debian_version", "copied") or die; move("copied", "moved") or die; print -s "moved", "\n";
print abs_path("/bin/sh"), " ", getcwd() eq $ENV{PWD} ? "here" : getcwd(), "\n";
my $server = IO::Socket::UNIX->new(Local => "s", Listen => 1) or die;
if (!fork) { my $client = IO::Socket::UNIX->new(Peer => "$ENV{PWD}/s"); print $client "hello\n"; exit 3 }
my $peer = $server->accept; print scalar <$peer>; wait; print $? >> 8, " ", $server->hostpath, "\n";
print glob("/usr/li*"), "\n"; open(my $lock, ">", "l"); print flock($lock, LOCK_EX), "\n"; print `pwd` eq "$ENV{PWD}\n";
'
"""

SHELLS: Final = r"""
set -m
sleep 1000 &
kill -STOP %1
until [[ $(jobs %1) == *Stopped* ]]; do :; done
bg %1 >/dev/null
[[ $(jobs %1) == *Running* ]] && echo running
kill %1
wait %1 2>/dev/null || echo $?
set +m
(trap 'echo caught; exit 7' USR1; kill -USR1 $BASHPID; while :; do :; done) || echo $?
bash -c 'sh -c "readlink /proc/\$\$/exe; cat /proc/\$\$/comm; exit 9"' || echo $?
cat <(echo one) <(echo two) | tee >(wc -l >count) >both
until [ -s count ]; do :; done
cat both count
echo {a..c}/ * ~ "$(pwd | grep -c /)"
coproc { read -r line; echo "got $line"; }
echo word >&"${COPROC[1]}"
read -r answer <&"${COPROC[0]}"
echo "$answer"
exec 7<>both; read -r first <&7; echo "$first"; exec 7>&-
for n in $(seq 100); do /bin/true & done; wait; echo all
env -i /bin/sh -c 'echo $PWD | grep -c /; type ls'
"""

DPKG: Final = r"""
dpkg --verify
dpkg-query -W -f '${binary:Package} ${Status}\n' | md5sum
dpkg -S /bin/sh /usr/bin/env | sort
apt-cache policy dpkg | head -n 2
mkdir -p package/DEBIAN package/usr/share/test
printf 'Package: a-test\nVersion: 1\nArchitecture: all\nMaintainer: a@b\nDescription: a test\n' >package/DEBIAN/control
echo text >package/usr/share/test/file
ln package/usr/share/test/file package/usr/share/test/hard
ln -s file package/usr/share/test/link
dpkg-deb --build --root-owner-group package a.deb
dpkg-deb -c a.deb | cut -c1-30,48-
mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info
touch root/var/lib/dpkg/status
dpkg --root=root --force-not-root --install a.deb 2>&1
dpkg --root=root --verify
dpkg --root=root --remove a-test
rm -rf a.deb root package
"""

SCRIPTS: Final = {
    "gcc": GCC, "make": MAKE, "git": GIT, "tar": TAR, "copies": COPIES, "rsync": RSYNC, "find": FIND, "sqlite": SQLITE,
    "python": PYTHON, "perl": PERL, "shells": SHELLS, "dpkg": DPKG, **SERVING,
}  # fmt: skip
