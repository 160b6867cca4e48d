"""Certificates and kubeconfigs of a cluster."""
import base64
import pathlib
import secrets
import subprocess

_PURPOSES = "keyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n"


def _openssl(*arguments, stdin=None):
    result = subprocess.run(["openssl", *map(str, arguments)], input=stdin, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]} failed: {result.stderr}")


def write_key(path):
    _openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", path)


class Authority:
    """A certificate authority in a folder: NAME.crt and NAME.key of each issued certificate; its own are ca.crt and ca.key."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self.certificate = self._folder / "ca.crt"
        self.key = self._folder / "ca.key"
        if not self.certificate.exists():
            _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 3650,
                     "-subj", "/CN=muster-test-cluster", "-keyout", self.key, "-out", self.certificate)

    def issue(self, name, subject, hosts=(), expired=False):
        """Issues a certificate for `subject` (/O=group/CN=user) and returns its path and that of its key. `hosts` are DNS:… and IP:…"""
        certificate, key, request = (self._folder / f"{name}.{kind}" for kind in ("crt", "key", "csr"))
        extensions = self._folder / f"{name}.ext"
        extensions.write_text(_PURPOSES + (f"subjectAltName={','.join(hosts)}\n" if hosts else ""))
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject,
                 "-keyout", key, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
                 "-set_serial", secrets.randbits(63), "-days", -1 if expired else 3650,
                 "-extfile", extensions, "-out", certificate)
        return certificate, key


def _data(path):
    return base64.b64encode(pathlib.Path(path).read_bytes()).decode()


def write_kubeconfig(path, server, authority, users):
    """Writes a kubeconfig with a context for each of `users`, {name: content of user:}; the first is the current one. Files
    named by fields that end in -data are embedded."""
    lines = ["apiVersion: v1", "kind: Config", f"current-context: {next(iter(users))}", "clusters:", "- name: test", "  cluster:",
             f"    server: {server}", f"    certificate-authority-data: {_data(authority)}", "contexts:"]
    for name in users:
        lines += [f"- name: {name}", f"  context: {{cluster: test, user: {name}}}"]
    lines.append("users:")
    for name, user in users.items():
        lines += [f"- name: {name}", "  user:"]
        for field, value in user.items():
            lines.append(f"    {field}: {_data(value) if field.endswith('-data') else value}")
    path = pathlib.Path(path)
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n")
    return path


def make_user(folder, server, name, groups=(), expired=False):
    """Writes, in a cluster's folder, the kubeconfig of a user without permissions until a role is bound to the name or to one
    of the groups."""
    authority = Authority(folder / "certificates")
    subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
    certificate, key = authority.issue(f"user-{name}", subject, expired=expired)
    return write_kubeconfig(folder / f"user-{name}.kubeconfig", server, authority.certificate,
                            {name: {"client-certificate-data": certificate, "client-key-data": key}})
