// The configuration of Hadoop's clients: core-site.xml and hdfs-site.xml.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::storage {

// Where the clusters of a configuration are reached over WebHDFS.
struct HadoopSite {
  // The cluster that hdfs:///path names: host:port of fs.defaultFS, or a nameservice.
  std::string default_authority;
  bool https = false;
  // host:port of the namenodes' web servers, by the authority of fs.defaultFS (which has the port
  // of Hadoop's RPC) and by the names in dfs.nameservices.
  std::map<std::string, std::vector<std::string>> namenodes;
};

// Reads both files of a folder; hdfs-site.xml may be missing. `https` selects the web servers of
// either kind; by default dfs.http.policy does. Returns FailedPrecondition, with the
// file and the reason, if they cannot be used or fs.defaultFS is not an HDFS.
absl::StatusOr<HadoopSite> ReadHadoopSite(const std::string& folder,
                                          std::optional<bool> https = std::nullopt);

}  // namespace muster::storage
