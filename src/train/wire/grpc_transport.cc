#include "train/wire/grpc_transport.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <cstring>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "train/wire/unix_socket.h"

namespace muster::train::wire {
namespace {

constexpr char kMethod[] = "/muster.train.wire.ParameterServer/Stream";
constexpr char kHelloKey[] = "muster-hello-bin";
constexpr absl::string_view kUnixPrefix = "unix:";
constexpr size_t kMaxFrameBytes = 64 << 20;  // PREPARE describes every variable of a shard

using ServerStream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
using ClientStream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// Returns a slice over the chunk's memory; holds its owner until gRPC has sent it.
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

// The slices of a received message.
std::vector<Chunk> ChunksOf(std::vector<grpc::Slice> slices) {
  std::vector<Chunk> chunks;
  chunks.reserve(slices.size());
  for (grpc::Slice& slice : slices) {
    auto owner = std::make_shared<const grpc::Slice>(std::move(slice));
    chunks.push_back({owner->begin(), owner->size(), owner});
  }
  return chunks;
}

// Returns `pieces` without their first `size` bytes. REQUIRES: they have that many.
std::vector<Chunk> Without(std::vector<Chunk> chunks, size_t first) {
  auto at = chunks.begin();
  for (; at != chunks.end() && first >= at->size; ++at) first -= at->size;
  if (at != chunks.end()) {
    at->data = static_cast<const std::byte*>(at->data) + first;
    at->size -= first;
  }
  chunks.erase(chunks.begin(), at);
  return chunks;
}

absl::StatusOr<Incoming> Decode(const grpc::ByteBuffer& buffer) {
  const absl::Status foreign =
      absl::InvalidArgumentError("the peer does not speak Muster's protocol");
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return foreign;
  Payload all(ChunksOf(std::move(slices)));
  uint32_t frame_size = 0;
  if (all.size() < sizeof(frame_size)) return foreign;
  all.Copy(0, sizeof(frame_size), &frame_size);
  if (frame_size > kMaxFrameBytes || frame_size > all.size() - sizeof(frame_size)) return foreign;
  std::string head(frame_size, '\0');
  all.Copy(sizeof(frame_size), head.size(), head.data());
  Incoming message;
  if (!message.frame.ParseFromString(head)) return foreign;
  const absl::Span<const Chunk> pieces = all.pieces();
  message.payload =
      Payload(Without({pieces.begin(), pieces.end()}, sizeof(frame_size) + head.size()));
  return message;
}

template <typename Arguments>
void Configure(Arguments& arguments) {
  // Large frames and windows: a bucket has a few MB and should not wait for flow control.
  arguments.SetInt("grpc.http2.lookahead_bytes", 16 << 20);
  arguments.SetInt("grpc.http2.max_frame_size", (16 << 20) - 1);
  arguments.SetInt("grpc.http2.write_buffer_size", 8 << 20);
  // The windows are fixed above, so gRPC need not estimate the bandwidth-delay product by pings.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, 1 << 20);
  arguments.SetInt(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 64 << 10);
  arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  arguments.SetInt(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  // A peer that does not answer pings for half a minute is lost, even if its TCP connection is
  // open.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // 0: no limit, since a stream may be silent for minutes. Below, the server accepts pings every 5
  // s; by default it would close the connection of a client that pings more often than every 5 min.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  // Every Connect() opens its own TCP connection, never through an HTTP proxy.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
}

// Disconnects clients without a certificate or HTTP/2 handshake after a timeout. Also connections
// without a stream: a task's connection has one for all of its life.
void LimitUnauthenticatedClients(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);
  // Room for the hello in base64 and the metadata of gRPC.
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(2 * kMaxHelloBytes));
}

struct BuilderArguments {
  grpc::ServerBuilder& builder;
  void SetInt(const std::string& name, int value) { builder.AddChannelArgument(name, value); }
};

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const std::optional<Tls>& tls) {
  if (!tls) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls->authority;
  options.pem_key_cert_pairs.push_back({tls->key, tls->certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const std::optional<Tls>& tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = tls->authority,
                               .pem_private_key = tls->key,
                               .pem_cert_chain = tls->certificate});
}

std::string PathOf(const std::string& address) {
  return absl::StartsWith(address, kUnixPrefix) ? address.substr(kUnixPrefix.size()) : "";
}

// Uses the monotonic clock, since the wall clock may be set meanwhile.
gpr_timespec DeadlineAfter(absl::Duration timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(absl::ToInt64Milliseconds(timeout), GPR_TIMESPAN));
}

absl::Status CannotConnect(const std::string& address) {
  return absl::UnavailableError(absl::StrCat("cannot connect to ", address));
}

std::optional<Frame> HelloOf(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find(kHelloKey);
  if (found == context.client_metadata().end()) return std::nullopt;
  const grpc::string_ref bytes = found->second;
  Frame hello;
  if (bytes.size() > kMaxHelloBytes ||
      !hello.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return std::nullopt;
  }
  return hello;
}

absl::Status CannotListen(const std::string& address) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen at ", address, "; another program may use it"));
}

class ServerConnection final : public Connection {
 public:
  ServerConnection(grpc::ServerContext& context, ServerStream& stream)
      : context_(context), stream_(stream) {}
  bool Send(Outgoing message) override { return stream_.Write(Encode(std::move(message))); }
  absl::StatusOr<Incoming> Receive() override {
    grpc::ByteBuffer buffer;
    if (!stream_.Read(&buffer)) return absl::UnavailableError("the task closed the connection");
    return Decode(buffer);
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  grpc::ServerContext& context_;
  ServerStream& stream_;
};

// Registers the method by hand: generated code would copy each payload through a message.
class StreamService final : public grpc::Service {
 public:
  explicit StreamService(StreamHandler serve) : serve_(std::move(serve)) {
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
    std::optional<Frame> hello = HelloOf(context);
    if (!hello) return {grpc::StatusCode::INVALID_ARGUMENT, "no hello of Muster's protocol"};
    ServerConnection connection(context, stream);
    serve_(connection, {*std::move(hello), context.peer()});
    return grpc::Status::OK;
  }

  const StreamHandler serve_;
};

class GrpcListener final : public Listener {
 public:
  explicit GrpcListener(StreamHandler serve) : service_(std::move(serve)) {}
  ~GrpcListener() override {
    // First: its thread hands connections to server_.
    socket_.reset();
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());  // cancels open streams
    server_->Wait();
  }

  absl::Status Start(const std::string& address, const std::optional<Tls>& tls) {
    const std::string path = PathOf(address);
    grpc::ServerBuilder builder;
    BuilderArguments arguments{builder};
    Configure(arguments);
    LimitUnauthenticatedClients(builder);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    int port = 0;
    if (path.empty()) {
      builder.AddListeningPort(address, ServerCredentials(tls), &port);
    }
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || (path.empty() && port == 0)) return CannotListen(address);
    if (path.empty()) return absl::OkStatus();
    // gRPC's own Unix sockets have the system's small buffers, and cannot have paths of more than
    // 107 characters.
    auto socket = UnixListener::Start(path, [this](base::UniqueFd connection) {
      grpc::AddInsecureChannelFromFd(server_.get(), connection.Release());
    });
    if (absl::IsAlreadyExists(socket.status())) return CannotListen(address);
    MUSTER_RETURN_IF_ERROR(socket.status());
    socket_ = *std::move(socket);
    return absl::OkStatus();
  }

 private:
  StreamService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<UnixListener> socket_;
};

class ClientConnection final : public Connection {
 public:
  ClientConnection(std::shared_ptr<grpc::Channel> channel, const Frame& hello)
      : channel_(std::move(channel)) {
    context_.AddMetadata(kHelloKey, hello.SerializeAsString());
    stream_ = std::unique_ptr<ClientStream>(
        grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
            channel_.get(),
            grpc::internal::RpcMethod(kMethod, grpc::internal::RpcMethod::BIDI_STREAMING),
            &context_));
  }
  ~ClientConnection() override {
    // Finish() waits for the server's status; a cancelled call has one at once.
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
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<ClientStream> stream_;
};

}  // namespace

absl::StatusOr<Tls> Tls::Read(const std::string& folder) {
  constexpr int64_t kMaxFileBytes = 1 << 20;
  Tls tls;
  for (const auto& [name, content] : {std::pair{"ca.crt", &tls.authority},
                                      {"tls.crt", &tls.certificate},
                                      {"tls.key", &tls.key}}) {
    MUSTER_ASSIGN_OR_RETURN(*content, base::ReadFile(base::JoinPath(folder, name), kMaxFileBytes));
  }
  return tls;
}

absl::Status GrpcTransport::CheckProtected(const std::string& address) const {
  if (tls_ || plaintext_ == Plaintext::kAnywhere || !PathOf(address).empty()) {
    return absl::OkStatus();
  }
  const auto parsed = cluster::ParseAddress(address);
  if (parsed && cluster::IsLoopback(parsed->host)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      address,
      " is on a network and this task has no certificates: anybody there could read and change "
      "the model. Set MUSTER_TLS_DIR to a folder with the job's certificates (create it with "
      "`muster env JOB --certificates DIR`); or, in a trusted network, set "
      "MUSTER_INSECURE_PLAINTEXT=1 for every task"));
}

absl::StatusOr<std::unique_ptr<Connection>> GrpcTransport::Connect(const std::string& address,
                                                                   const Frame& hello,
                                                                   absl::Duration timeout) {
  MUSTER_RETURN_IF_ERROR(CheckProtected(address));
  if (hello.ByteSizeLong() > kMaxHelloBytes) {
    return absl::InvalidArgumentError("the names of this task and its process are too long");
  }
  grpc::ChannelArguments arguments;
  Configure(arguments);
  if (const std::string path = PathOf(address); !path.empty()) {
    auto socket = ConnectUnix(path, timeout);
    if (!socket.ok()) return CannotConnect(address);
    return std::make_unique<ClientConnection>(
        grpc::CreateCustomInsecureChannelFromFd(address, socket->Release(), arguments), hello);
  }
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // Also the minimum time of one attempt, which includes the TLS handshake.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  if (tls_) arguments.SetSslTargetNameOverride(cluster::kTaskTlsName);
  auto channel = grpc::CreateCustomChannel(address, ClientCredentials(tls_), arguments);
  if (!channel->WaitForConnected(DeadlineAfter(timeout))) return CannotConnect(address);
  return std::make_unique<ClientConnection>(std::move(channel), hello);
}

absl::StatusOr<std::unique_ptr<Listener>> GrpcTransport::Listen(const std::string& address,
                                                                StreamHandler serve) {
  MUSTER_RETURN_IF_ERROR(CheckProtected(address));
  auto listener = std::make_unique<GrpcListener>(std::move(serve));
  MUSTER_RETURN_IF_ERROR(listener->Start(address, tls_));
  return listener;
}

}  // namespace muster::train::wire
