"""An RTSP server for tests, on 127.0.0.1 and a free port.

    rtspserver.py [--user NAME --password WORD] [--certificate FILE.pem] [--size 320x240] [--fps 30]
                  [--picture FILE.jpg]

It prints "port N" and obeys one command a line on stdin, each answered by "ok COMMAND":

    drop            closes all connections
    hang / go       stops and resumes sending, with the connections open
    password WORD   takes this password from now on
    size WxH        changes the size in mid-stream
    away / back     stops listening and closes all connections; listens again on the same port

It shows a ball that moves, or the picture. It serves /cam, /stream and /a!b;(c)$d'e,f=g (H.264), /hevc (H.265), /both (sound and H.264) and /sound (no video). It ends with its stdin.
"""

import argparse
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gio, GLib, Gst, GstRtspServer  # noqa: E402

ROLE = "viewer"
H264 = "x264enc tune=zerolatency speed-preset=ultrafast sliced-threads=false bitrate=1000 key-int-max=10 ! rtph264pay config-interval=-1"
H265 = "x265enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! rtph265pay config-interval=-1"
SOUND = "audiotestsrc is-live=true ! audioconvert ! alawenc ! rtppcmapay"


class Server:
    def __init__(self, args):
        self.args = args
        self.caps = self.caps_of(args.size)
        self.hanging = False
        self.media = []
        self.server = GstRtspServer.RTSPServer(address="127.0.0.1", service="0")
        self.password(args.password)
        mounts = self.server.get_mount_points()
        scene = "videotestsrc is-live=true pattern=ball"
        if args.picture:
            scene = f"filesrc location={args.picture} ! jpegdec ! videoconvert ! videoscale ! imagefreeze is-live=true"
        picture = scene + " ! capsfilter name=size ! valve name=valve ! "
        for path, launch in {
            "/cam": picture + H264 + " name=pay0 pt=96",
            "/stream": picture + H264 + " name=pay0 pt=96",
            "/a!b;(c)$d'e,f=g": picture + H264 + " name=pay0 pt=96",
            "/hevc": picture + H265 + " name=pay0 pt=96",
            "/both": SOUND + " name=pay0 pt=8 " + picture + H264 + " name=pay1 pt=96",
            "/sound": SOUND + " name=pay0 pt=8",
        }.items():
            factory = GstRtspServer.RTSPMediaFactory()
            factory.set_launch("( " + launch + " )")
            factory.set_shared(True)
            factory.connect("media-configure", self.configure)
            if args.user:
                factory.add_role_from_structure(self.permissions())
            mounts.add_factory(path, factory)
        self.source = self.server.attach(None)
        self.port = self.server.get_bound_port()

    def permissions(self):
        role = Gst.Structure.new_empty(ROLE)
        for what in ("media.factory.access", "media.factory.construct"):
            role.set_value(what, True)
        return role

    def caps_of(self, size):
        w, h = size.split("x")
        return Gst.Caps.from_string(f"video/x-raw,format=I420,width={w},height={h},framerate={self.args.fps}/1")

    def configure(self, _factory, media):
        top = media.get_element()
        if top.get_by_name("size"):
            top.get_by_name("size").set_property("caps", self.caps)
            top.get_by_name("valve").set_property("drop", self.hanging)
            self.media.append(media)
            media.connect("unprepared", self.media.remove)

    def each(self, element, name, value):
        for media in self.media:
            media.get_element().get_by_name(element).set_property(name, value)

    def obey(self, command, rest):
        if command == "drop":
            self.close_clients()
        elif command in ("hang", "go"):
            self.hanging = command == "hang"
            self.each("valve", "drop", self.hanging)
        elif command == "password":
            self.password(rest)
        elif command == "size":
            self.caps = self.caps_of(rest)
            self.each("size", "caps", self.caps)
        elif command == "away":
            GLib.source_remove(self.source)
            self.close_clients()
        elif command == "back":
            self.server.set_service(str(self.port))
            self.source = self.server.attach(None)
        else:
            sys.exit(f"unknown command {command}")

    def close_clients(self):
        self.server.client_filter(lambda _server, _client: GstRtspServer.RTSPFilterResult.REMOVE)

    def password(self, word):
        """Sets a new RTSPAuth: one whose password was taken away takes no other."""
        if not self.args.user and not self.args.certificate:
            return
        auth = GstRtspServer.RTSPAuth()
        if self.args.user:
            token = GstRtspServer.RTSPToken()
            token.set_string("media.factory.role", ROLE)
            auth.add_basic(GstRtspServer.RTSPAuth.make_basic(self.args.user, word), token)
        if self.args.certificate:
            auth.set_tls_certificate(Gio.TlsCertificate.new_from_file(self.args.certificate))
        self.server.set_auth(auth)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--user")
    parser.add_argument("--password")
    parser.add_argument("--certificate")
    parser.add_argument("--size", default="320x240")
    parser.add_argument("--fps", type=int, default=30)
    parser.add_argument("--picture")
    args = parser.parse_args()
    Gst.init(None)
    loop = GLib.MainLoop()
    server = Server(args)

    def readable(channel, _condition):
        line = channel.readline()
        if not line:
            loop.quit()
            return False
        server.obey(*line.strip().partition(" ")[::2])
        print("ok", line.strip(), flush=True)
        return True

    GLib.io_add_watch(sys.stdin, GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, readable)
    print("port", server.port, flush=True)
    loop.run()


main()
