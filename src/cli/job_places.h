// Where the fields of a job stand in its file.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/node.h"
#include "launch/submission.h"

namespace muster::cli {

// Of a job that is made of several files nothing is known: their texts were joined.
class JobPlaces {
 public:
  explicit JobPlaces(const Submission& submission);

  // A field by the keys that lead to it; the innermost that the file has.
  codec::Mark Of(const std::vector<std::string>& path) const;
  // A field of a role, else the one that holds for all roles, else the role; of a manifest the
  // containers of the role.
  codec::Mark OfRole(const std::string& role, const std::string& field) const;

 private:
  struct Step {
    codec::Mark mark;
    bool whole = false;  // the path was found to its end
  };
  Step Walk(const std::vector<std::string>& path) const;

  codec::Node document_;
};

}  // namespace muster::cli
