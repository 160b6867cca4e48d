#include "launch/vertex/place.h"

#include "absl/strings/str_cat.h"

namespace muster::vertex {
namespace {

// Written by this program, or by hand in a copy of it: what is of another kind is not there.
std::string Text(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int> Count(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int>();
}

const nlohmann::json& List(const nlohmann::json& json, const char* key) {
  static const auto& kNone = *new nlohmann::json(nlohmann::json::array());
  const auto found = json.find(key);
  return found != json.end() && found->is_array() ? *found : kNone;
}

}  // namespace

Place Place::Of(const Submission& submission) {
  const nlohmann::json& json = submission.place;
  if (!json.is_object()) return {};
  Place place{.project = Text(json, "project"),
              .region = Text(json, "region"),
              .bucket = Text(json, "bucket"),
              .tier = Text(json, "scale_tier"),
              .master_type = Text(json, "master_type"),
              .worker_type = Text(json, "worker_type"),
              .parameter_server_type = Text(json, "parameter_server_type"),
              .workers = Count(json, "worker_count"),
              .parameter_servers = Count(json, "parameter_server_count"),
              .image = Text(json, "image"),
              .dataset = Text(json, "dataset"),
              .rebuild = json.contains("rebuild") && json["rebuild"] == true,
              .folder = Text(json, "folder"),
              .job = Text(json, "custom_job"),
              .run_sha256 = Text(json, "run_sha256")};
  for (const auto& package : List(json, "packages")) {
    if (package.is_string()) place.packages.push_back(package.get<std::string>());
  }
  for (const auto& nonce : List(json, "tries")) {
    if (nonce.is_string()) place.tries.push_back(nonce.get<std::string>());
  }
  if (const auto asked = json.find("asked_us"); asked != json.end() && asked->is_number_integer()) {
    place.asked_us = asked->get<int64_t>();
  }
  return place;
}

nlohmann::json Place::ToJson() const {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, value] : {std::pair("project", &project),
                                   {"region", &region},
                                   {"bucket", &bucket},
                                   {"scale_tier", &tier},
                                   {"master_type", &master_type},
                                   {"worker_type", &worker_type},
                                   {"parameter_server_type", &parameter_server_type},
                                   {"image", &image},
                                   {"dataset", &dataset},
                                   {"folder", &folder},
                                   {"custom_job", &job},
                                   {"run_sha256", &run_sha256}}) {
    if (!value->empty()) json[key] = *value;
  }
  if (workers) json["worker_count"] = *workers;
  if (parameter_servers) json["parameter_server_count"] = *parameter_servers;
  if (!tries.empty()) json["tries"] = tries;
  if (asked_us != 0) json["asked_us"] = asked_us;
  if (rebuild) json["rebuild"] = true;
  if (!packages.empty()) json["packages"] = packages;
  return json;
}

nlohmann::json Place::Wishes() const {
  Place wishes = *this;
  wishes.job = wishes.folder = wishes.run_sha256 = "";
  wishes.packages = wishes.tries = {};
  wishes.asked_us = 0;
  return wishes.ToJson();
}

std::string Place::FolderOf(const std::string& id) const {
  return absl::StrCat("gs://", bucket, "/muster_", id);
}

}  // namespace muster::vertex
