"""Storages on loopback for tests, each a server in a process of its own."""
import shutil
import sys

import radosgw
from support import SOURCE, GsServer, serve, start_hdfs

S3RVER = SOURCE / "build" / "npm" / "node_modules" / "@20minutes" / "s3rver"


def _without_proxies(test):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        test.env.pop(name, None)


def use_s3(test, port=0):
    """Somebody else's S3 server, for all that the test runs from here on; a URL of its bucket. Started again at its port, it
    has what it had."""
    if shutil.which("node") is None or not S3RVER.exists():
        test.skipTest(f"no node, or no s3rver in {S3RVER}; scripts/test installs it")
    script = (f"new (require('{S3RVER}'))({{port: {port}, address: '127.0.0.1', silent: true, directory: "
              f"'{test.dir / 's3'}', configureBuckets: [{{name: 'bucket'}}]}}).run().then(({{port}}) => console.log(port))")
    _without_proxies(test)
    port = int(serve(test, "node", "--openssl-legacy-provider", "--no-deprecation", "-e", script))
    test.env.update(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ACCESS_KEY_ID="S3RVER", AWS_SECRET_ACCESS_KEY="S3RVER")
    return "s3://bucket"


def use_radosgw(test):
    """Ceph's S3 gateway; a URL of its bucket."""
    if lacking := radosgw.missing():
        test.skipTest(f"no {', '.join(lacking)}; scripts/test installs them")
    _without_proxies(test)
    port = int(serve(test, sys.executable, "-B", radosgw.__file__, test.dir / "radosgw"))
    test.env.update(AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_ACCESS_KEY_ID=radosgw.ACCESS_KEY,
                    AWS_SECRET_ACCESS_KEY=radosgw.SECRET_KEY)
    return "s3://bucket"


def use_gs(test):
    """Our Google Cloud Storage server, which the official client has judged; a URL of its bucket."""
    _without_proxies(test)
    test.env["STORAGE_EMULATOR_HOST"] = GsServer(test).address
    return "gs://bucket"


def use_hdfs(test):
    """Our WebHDFS server, which clients of others have judged; a URL of a folder."""
    _without_proxies(test)
    test.env["HADOOP_USER_NAME"] = "alice"
    return f"hdfs://127.0.0.1:{start_hdfs(test)}/runs"


def use_file(test):
    return str(test.dir / "elsewhere")
