// Locates the fields of a job in its file, for diagnostics.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/node.h"
#include "job/submission.h"

namespace muster::job {

// Immutable. All marks are {} for a job whose source was generated.
class FieldMarks {
 public:
  explicit FieldMarks(const Submission& submission);

  // Returns the mark of the field at `path`, a list of keys, or of its innermost ancestor in the
  // file.
  codec::Mark Of(const std::vector<std::string>& path) const;
  // Returns the mark of a role's field, else of the top-level field of that name, else of the role.
  // For a TFJob manifest, returns the mark of the role's containers.
  codec::Mark OfRole(const std::string& role, const std::string& field) const;

 private:
  struct Step {
    codec::Mark mark;
    bool whole = false;  // the file has the whole path
  };
  Step Walk(const std::vector<std::string>& path) const;

  codec::Node document_;
};

}  // namespace muster::job
