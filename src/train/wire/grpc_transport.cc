#include "train/wire/grpc_transport.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/sync_stream.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace muster::train::wire {
namespace {

constexpr char kMethod[] = "/muster.train.wire.ParameterServer/Stream";
constexpr absl::string_view kUnixPrefix = "unix:";
constexpr size_t kMaxUnixPath = 107;
constexpr size_t kMaxFrameBytes = 64 << 20;  // PREPARE describes every variable of a shard

using ServerStream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
using ClientStream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// A slice over memory that its owner keeps until gRPC has sent it.
grpc::Slice SliceOf(Chunk chunk) {
  auto* owner = new std::shared_ptr<const void>(std::move(chunk.owner));
  return grpc::Slice(
      const_cast<void*>(chunk.data), chunk.size,
      [](void* user) { delete static_cast<std::shared_ptr<const void>*>(user); }, owner);
}

grpc::ByteBuffer Encode(Outgoing message) {
  const auto frame_size = static_cast<uint32_t>(message.frame.ByteSizeLong());
  std::string head(sizeof(frame_size) + frame_size, '\0');
  std::memcpy(head.data(), &frame_size, sizeof(frame_size));
  message.frame.SerializeToArray(head.data() + sizeof(frame_size), static_cast<int>(frame_size));
  std::vector<grpc::Slice> slices;
  slices.reserve(message.payload.size() + 1);
  slices.emplace_back(head);
  for (Chunk& chunk : message.payload) {
    if (chunk.size > 0) slices.push_back(SliceOf(std::move(chunk)));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Reads a message that lies in several pieces of memory from its beginning to its end.
class Gather {
 public:
  explicit Gather(std::vector<grpc::Slice> slices) : slices_(std::move(slices)) {}

  bool Copy(void* to, size_t size) {
    auto* out = static_cast<std::byte*>(to);
    while (size > 0) {
      if (at_ == slices_.size()) return false;
      const size_t n = std::min(size, slices_[at_].size() - offset_);
      std::memcpy(out, slices_[at_].begin() + offset_, n);
      out += n;
      size -= n;
      Advance(n);
    }
    return true;
  }

  // What is left, where it is when that is one piece, and copied otherwise.
  Payload Rest() {
    while (at_ < slices_.size() && offset_ == slices_[at_].size()) Advance(0);
    if (at_ == slices_.size()) return {};
    if (at_ + 1 == slices_.size()) {
      auto slice = std::make_shared<grpc::Slice>(std::move(slices_[at_]));
      const auto* data = reinterpret_cast<const std::byte*>(slice->begin()) + offset_;
      const size_t size = slice->size() - offset_;
      return {data, size, std::move(slice)};
    }
    size_t size = slices_[at_].size() - offset_;
    for (size_t i = at_ + 1; i < slices_.size(); ++i) size += slices_[i].size();
    std::shared_ptr<std::byte> copy(static_cast<std::byte*>(std::malloc(size)), std::free);
    if (copy == nullptr) throw std::bad_alloc();
    Copy(copy.get(), size);
    return {copy.get(), size, copy};
  }

 private:
  void Advance(size_t n) {
    offset_ += n;
    if (offset_ == slices_[at_].size()) {
      ++at_;
      offset_ = 0;
    }
  }

  std::vector<grpc::Slice> slices_;
  size_t at_ = 0;
  size_t offset_ = 0;
};

absl::StatusOr<Incoming> Decode(const grpc::ByteBuffer& buffer) {
  const absl::Status foreign =
      absl::InvalidArgumentError("the peer does not speak Muster's protocol");
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return foreign;
  Gather gather(std::move(slices));
  uint32_t frame_size = 0;
  if (!gather.Copy(&frame_size, sizeof(frame_size)) || frame_size > kMaxFrameBytes ||
      frame_size > buffer.Length()) {
    return foreign;
  }
  std::string head(frame_size, '\0');
  Incoming message;
  if (!gather.Copy(head.data(), head.size()) || !message.frame.ParseFromString(head)) {
    return foreign;
  }
  message.payload = gather.Rest();
  return message;
}

template <typename Arguments>
void Configure(Arguments& arguments) {
  // Large frames and windows: a bucket is a few MB and should not wait for permission to go on.
  arguments.SetInt("grpc.http2.lookahead_bytes", 16 << 20);
  arguments.SetInt("grpc.http2.max_frame_size", (16 << 20) - 1);
  arguments.SetInt("grpc.http2.write_buffer_size", 8 << 20);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20);
  arguments.SetInt(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 64 << 10);
  arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  arguments.SetInt(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  // A peer that is silent for half a minute is gone, even if its machine never said so.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  // Each connection is one of its own; a proxy has no place between tasks.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
}

struct BuilderArguments {
  grpc::ServerBuilder& builder;
  void SetInt(const std::string& name, int value) { builder.AddChannelArgument(name, value); }
};

// gRPC's address for ours, and what must stay open for it to work: a socket's path may have 107
// characters only, so that a longer one is reached through a descriptor of its folder.
struct Target {
  std::string address;
  UniqueFd folder;
};

std::string PathOf(const std::string& address) {
  return absl::StartsWith(address, kUnixPrefix) ? address.substr(kUnixPrefix.size()) : "";
}

absl::Status Taken(const std::string& address) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen at ", address, ": another program may be using it"));
}

// gRPC takes a socket's path away from whoever listens there. A lock beside it, which ends with its
// process, says whether somebody does.
absl::StatusOr<UniqueFd> Reserve(const std::string& address) {
  const std::string path = PathOf(address);
  if (path.empty()) return UniqueFd();
  const std::string lock_path = path + ".lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return absl::ErrnoToStatus(errno, lock_path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return Taken(address);
  return lock;
}

absl::StatusOr<Target> Resolve(const std::string& address) {
  const std::filesystem::path path(PathOf(address));
  if (path.native().size() <= kMaxUnixPath) return Target{address, UniqueFd()};
  UniqueFd folder(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return absl::ErrnoToStatus(errno, path.parent_path().string());
  std::string through =
      absl::StrCat(kUnixPrefix, "/proc/self/fd/", folder.get(), "/", path.filename().string());
  return Target{std::move(through), std::move(folder)};
}

class ServerConnection final : public Connection {
 public:
  ServerConnection(grpc::ServerContext& context, ServerStream& stream)
      : context_(context), stream_(stream) {}
  bool Send(Outgoing message) override { return stream_.Write(Encode(std::move(message))); }
  absl::StatusOr<Incoming> Receive() override {
    grpc::ByteBuffer buffer;
    if (!stream_.Read(&buffer)) return absl::UnavailableError("the task has gone");
    return Decode(buffer);
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  grpc::ServerContext& context_;
  ServerStream& stream_;
};

// The one method, registered by hand: generated code would copy each payload through a message.
class StreamService final : public grpc::Service {
 public:
  explicit StreamService(std::function<void(Connection&)> serve) : serve_(std::move(serve)) {
    using Handler =
        grpc::internal::BidiStreamingHandler<StreamService, grpc::ByteBuffer, grpc::ByteBuffer>;
    AddMethod(new grpc::internal::RpcServiceMethod(
        kMethod, grpc::internal::RpcMethod::BIDI_STREAMING,
        new Handler([](StreamService* service, grpc::ServerContext* context,
                       ServerStream* stream) { return service->Serve(*context, *stream); },
                    this)));
  }

 private:
  grpc::Status Serve(grpc::ServerContext& context, ServerStream& stream) {
    ServerConnection connection(context, stream);
    serve_(connection);
    return grpc::Status::OK;
  }

  std::function<void(Connection&)> serve_;
};

class GrpcListener final : public Listener {
 public:
  GrpcListener(Target target, std::function<void(Connection&)> serve)
      : target_(std::move(target)), service_(std::move(serve)) {}
  ~GrpcListener() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());  // cancels what is open
    server_->Wait();
  }

  absl::Status Start(const std::string& address) {
    MUSTER_ASSIGN_OR_RETURN(lock_, Reserve(address));
    grpc::ServerBuilder builder;
    BuilderArguments arguments{builder};
    Configure(arguments);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    int port = 0;
    builder.AddListeningPort(target_.address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port != 0) return absl::OkStatus();
    server_.reset();
    return Taken(address);
  }

 private:
  Target target_;
  UniqueFd lock_;
  StreamService service_;
  std::unique_ptr<grpc::Server> server_;
};

class ClientConnection final : public Connection {
 public:
  ClientConnection(Target target, std::shared_ptr<grpc::Channel> channel)
      : target_(std::move(target)),
        channel_(std::move(channel)),
        stream_(
            grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
                channel_.get(),
                grpc::internal::RpcMethod(kMethod, grpc::internal::RpcMethod::BIDI_STREAMING),
                &context_)) {}
  ~ClientConnection() override {
    context_.TryCancel();
    (void)stream_->Finish();
  }

  bool Send(Outgoing message) override { return stream_->Write(Encode(std::move(message))); }
  absl::StatusOr<Incoming> Receive() override {
    grpc::ByteBuffer buffer;
    if (!stream_->Read(&buffer)) return absl::UnavailableError("the connection was lost");
    return Decode(buffer);
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  Target target_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<ClientStream> stream_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> GrpcTransport::Connect(const std::string& address,
                                                                   absl::Duration timeout) {
  auto resolved = Resolve(address);
  if (!resolved.ok()) return absl::UnavailableError(resolved.status().message());
  Target target = *std::move(resolved);
  grpc::ChannelArguments arguments;
  Configure(arguments);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  auto channel =
      grpc::CreateCustomChannel(target.address, grpc::InsecureChannelCredentials(), arguments);
  const absl::Time deadline = absl::Now() + timeout;
  if (!channel->WaitForConnected(absl::ToChronoTime(deadline))) {
    return absl::UnavailableError(absl::StrCat("nobody answers at ", address));
  }
  return std::make_unique<ClientConnection>(std::move(target), std::move(channel));
}

absl::StatusOr<std::unique_ptr<Listener>> GrpcTransport::Listen(
    const std::string& address, std::function<void(Connection&)> serve) {
  MUSTER_ASSIGN_OR_RETURN(Target target, Resolve(address));
  auto listener = std::make_unique<GrpcListener>(std::move(target), std::move(serve));
  MUSTER_RETURN_IF_ERROR(listener->Start(address));
  return listener;
}

}  // namespace muster::train::wire
