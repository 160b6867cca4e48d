"""Servers on loopback for tests, each in its own process: storages, and a registry of images."""
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

import radosgw
from support import SOURCE, GsServer, free_ports, serve, start_hdfs, wait_until

S3RVER = SOURCE / "build" / "npm" / "node_modules" / "@20minutes" / "s3rver"


def _without_proxies(test):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        test.env.pop(name, None)


def use_s3(test, port=0):
    """Starts a third-party S3 server for the rest of the test. Returns a URL of its bucket. Restarted at its port, it
    keeps its objects."""
    if shutil.which("node") is None or not S3RVER.exists():
        test.skipTest(f"no node, or no s3rver in {S3RVER}; scripts/test installs it")
    script = (f"new (require('{S3RVER}'))({{port: {port}, address: '127.0.0.1', silent: true, directory: "
              f"'{test.dir / 's3'}', configureBuckets: [{{name: 'bucket'}}]}}).run().then(({{port}}) => console.log(port))")
    _without_proxies(test)
    port = int(serve(test, "node", "--openssl-legacy-provider", "--no-deprecation", "-e", script))
    test.env.update(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ACCESS_KEY_ID="S3RVER", AWS_SECRET_ACCESS_KEY="S3RVER")
    return "s3://bucket"


def use_radosgw(test):
    """Starts Ceph's S3 gateway. Returns a URL of its bucket."""
    if lacking := radosgw.missing():
        test.skipTest(f"no {', '.join(lacking)}; scripts/test installs them")
    _without_proxies(test)
    port = int(serve(test, sys.executable, "-B", radosgw.__file__, test.dir / "radosgw"))
    test.env.update(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ACCESS_KEY_ID=radosgw.ACCESS_KEY,
                    AWS_SECRET_ACCESS_KEY=radosgw.SECRET_KEY)
    return "s3://bucket"


def built(test, server):
    """Returns the folder of a server that tests/servers/build gets. Skips the test if it is not there."""
    found = subprocess.run([SOURCE / "tests" / "servers" / "build", "--check", server], capture_output=True, text=True)
    if found.returncode != 0:
        test.skipTest(found.stderr.strip())
    return found.stdout.strip()


def _start(test, name, command, env=None):
    """Starts a server that ends with the test. Returns its process, and the file of its output."""
    folder = test.dir / name
    folder.mkdir(exist_ok=True)
    with open(folder / "output", "a") as output:
        server = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output, cwd=folder, env={**os.environ, **(env or {})},
                                  preexec_fn=radosgw.die_with_parent)
    test.addCleanup(server.wait)
    test.addCleanup(server.kill)
    return server, folder / "output"


def _await(server, output, condition):
    def ready():
        if server.poll() is not None:
            raise AssertionError(f"the server ended with {server.returncode}:\n{output.read_text()[-3000:]}")
        return condition()
    return wait_until(ready, f"the server answers; {output}", 120)


def _answers(url):
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def use_registry(test, passwords=None):
    """Starts a registry of images, with {user: bcrypt hash} if `passwords` is given. Returns its host and port."""
    program = f"{built(test, 'docker-registry')}/usr/bin/docker-registry"
    (port,) = free_ports(1)
    settings = {"version": 0.1, "storage": {"filesystem": {"rootdirectory": str(test.dir / "registry")}},
                "http": {"addr": f"127.0.0.1:{port}", "secret": "x"}}
    if passwords:
        users = test.write("htpasswd", "".join(f"{user}:{word}\n" for user, word in passwords.items()))
        settings["auth"] = {"htpasswd": {"realm": "test", "path": str(users)}}
    server, output = _start(test, "registry", [program, "serve", test.write("registry.yml", json.dumps(settings))])
    _await(server, output, lambda: _answers(f"http://127.0.0.1:{port}/v2/"))
    return f"127.0.0.1:{port}"


def use_minio(test):
    """Starts MinIO. Returns a URL of its bucket, which `muster storage mb` makes."""
    program = f"{built(test, 'minio')}/minio"
    _without_proxies(test)
    port, console = free_ports(2)
    server, output = _start(test, "minio", [program, "server", "--quiet", "--address", f"127.0.0.1:{port}", "--console-address",
                                            f"127.0.0.1:{console}", "files"],
                            {"MINIO_ROOT_USER": "MUSTER", "MINIO_ROOT_PASSWORD": "hunter22", "MINIO_UPDATE": "off", "MINIO_BROWSER": "off"})
    _await(server, output, lambda: _answers(f"http://127.0.0.1:{port}/minio/health/ready"))
    test.env.update(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ACCESS_KEY_ID="MUSTER", AWS_SECRET_ACCESS_KEY="hunter22")
    test.muster("storage", "mb", "s3://bucket")
    return "s3://bucket"


def use_fake_gcs(test):
    """Starts fake-gcs-server. Returns a URL of its bucket, which `muster storage mb` makes."""
    program = f"{built(test, 'fake-gcs-server')}/fake-gcs-server"
    _without_proxies(test)
    (port,) = free_ports(1)
    server, output = _start(test, "fake-gcs", [program, "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory",
                                               "-external-url", f"http://127.0.0.1:{port}"])
    _await(server, output, lambda: _answers(f"http://127.0.0.1:{port}/storage/v1/b?project=p"))
    test.env.update(STORAGE_EMULATOR_HOST=f"127.0.0.1:{port}", GOOGLE_CLOUD_PROJECT="p")
    test.muster("storage", "mb", "gs://bucket")
    return "gs://bucket"


def use_hadoop(test):
    """Starts a namenode and a datanode of Hadoop. Returns a URL of a folder in its default file system."""
    libraries = built(test, "hadoop")
    if shutil.which("java") is None:
        test.skipTest("no java; scripts/test installs it")
    _without_proxies(test)
    site = test.dir / "hadoop" / "conf" / "core-site.xml"
    site.parent.mkdir(parents=True)
    server, output = _start(test, "hadoop", ["java", "-Xmx256m", "-cp", f"{libraries}/*", "org.apache.hadoop.test.MiniDFSClusterManager",
                                             "-format", "-datanodes", "1", "-writeConfig", site, "-writeDetails", "started"])
    started = test.dir / "hadoop" / "started"  # written after the configuration
    _await(server, output, lambda: started.exists() and started.read_text().endswith("}"))
    test.env["HADOOP_CONF_DIR"] = str(site.parent)
    return "hdfs:///runs"


def use_gs(test):
    """Starts our Google Cloud Storage server, which the official client checks. Returns a URL of its bucket."""
    _without_proxies(test)
    test.env["STORAGE_EMULATOR_HOST"] = GsServer(test).address
    return "gs://bucket"


def use_hdfs(test):
    """Starts our WebHDFS server, which third-party clients check. Returns a URL of a folder."""
    _without_proxies(test)
    test.env["HADOOP_USER_NAME"] = "alice"
    return f"hdfs://127.0.0.1:{start_hdfs(test)}/runs"


def use_file(test):
    return str(test.dir / "elsewhere")
