// An HDFS client for tests.
#pragma once

#include <memory>
#include <utility>

#include "net/http_client.h"
#include "storage/hdfs/client.h"
#include "storage/hdfs/file_system.h"
#include "storage/testing/environment.h"

namespace muster::storage {

// Uses small chunks and backoff without delay.
inline std::unique_ptr<HdfsFileSystem> FilesWith(HdfsOptions options) {
  ForgetProxies();
  options.chunk_bytes = 1000;
  options.http.sleep = [](absl::Duration) {};
  options.http.stall_timeout = absl::Seconds(1);
  auto http = *net::HttpClient::Create(options.http);
  return std::make_unique<HdfsFileSystem>(std::make_unique<HdfsClient>(options, std::move(http)));
}

}  // namespace muster::storage
