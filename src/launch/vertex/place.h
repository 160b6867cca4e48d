// Where a job is in Google Cloud, and on what machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/submission.h"

namespace muster::vertex {

struct Place {
  std::string project;
  std::string region;
  std::string bucket;
  std::string tier;
  // Names of machines, as the user gave them; "": the tier's, or its default.
  std::string master_type, worker_type, parameter_server_type;
  std::optional<int> workers, parameter_servers;  // instead of the file's replicas
  std::string image;                              // of every role that names none of its own
  std::string dataset;                            // instead of the path in the file
  bool rebuild = false;                           // what is in the bucket already is sent again
  std::vector<std::string> packages;              // of a run whose files are used again
  std::string folder;  // gs://… that checkpoints go to: the first run's
  std::string job;     // the CustomJob's resource name; "": none yet
  // What each submission of this id from here is called, so that nobody takes another's job or
  // folder for its own. The last is this one's; those before it never came to be.
  std::vector<std::string> tries;
  std::string run_sha256;  // of job.json in the run's folder; "": not written yet
  int64_t asked_us = 0;    // when Vertex AI was asked to make the job; 0: not yet

  static Place Of(const Submission& submission);
  nlohmann::json ToJson() const;

  std::string nonce() const { return tries.empty() ? "" : tries.back(); }
  // Whether another has started it, and it was merely looked at from here.
  bool is_anothers() const { return tries.empty() && !job.empty(); }
  // What the user may ask for, without what became of it.
  nlohmann::json Wishes() const;
  // gs://BUCKET/muster_ID, where what a run needs is kept.
  std::string FolderOf(const std::string& id) const;
};

}  // namespace muster::vertex
