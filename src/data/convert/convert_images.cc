// Reads folders of images, one per class, as examples.
#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "data/convert/convert.h"
#include "data/image.h"
#include "data/resize.h"
#include "data/tfrecord/example.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxImageFile = int64_t{1} << 30;

bool IsImageName(const fs::path& path) {
  const std::string extension = absl::AsciiStrToLower(path.extension().string());
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

struct ImageFile {
  std::string path;
  size_t folder = 0;  // index into folders_
};

class Images : public ExampleSource {
 public:
  Images(std::vector<ImageFile> files, std::vector<std::string> folders,
         const std::optional<ImageSize>& resize)
      : files_(std::move(files)), folders_(std::move(folders)), resize_(resize) {
    Images::UseClasses(folders_);
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  std::vector<std::string> class_names() const override { return classes_; }

  std::vector<std::string> LabelsBeyond(const std::vector<std::string>& classes) const override {
    std::vector<std::string> beyond;
    for (const std::string& folder : folders_) {
      if (std::find(classes.begin(), classes.end(), folder) == classes.end()) {
        beyond.push_back(folder);
      }
    }
    return beyond;
  }

  void UseClasses(const std::vector<std::string>& classes) override {
    classes_ = classes;
    numbers_.clear();
    for (const std::string& folder : folders_) {
      numbers_.push_back(std::find(classes.begin(), classes.end(), folder) - classes.begin());
    }
  }

  absl::StatusOr<std::string> Example(int64_t index) override {
    const ImageFile& file = files_[static_cast<size_t>(index)];
    MUSTER_ASSIGN_OR_RETURN(std::string bytes, base::ReadFile(file.path, kMaxImageFile));
    auto info = ReadImageInfo(bytes);
    if (info.ok() && resize_) info = Resize(*info, bytes);
    if (!info.ok()) return base::Annotate(info.status(), file.path);
    if (first_.height == 0) first_ = *info;
    colour_ = colour_ || info->channels == 3;
    if (other_.empty() && (info->height != first_.height || info->width != first_.width)) {
      other_ = absl::StrCat(file.path, " is ", info->height, " x ", info->width, ", ",
                            files_[0].path, " is ", first_.height, " x ", first_.width);
    }
    builder_.AddBytes("image", bytes);
    builder_.AddInts("label", {numbers_[file.folder]});
    builder_.AddBytes("class", folders_[file.folder]);
    builder_.AddInts("height", {info->height});
    builder_.AddInts("width", {info->width});
    return builder_.Finish();
  }

  std::string features() const override {
    return absl::StrCat("{image: {type: ", first_.format, ", shape: [", first_.height, ", ",
                        first_.width, colour_ ? ", 3" : "", "]}, label: int64}");
  }

  std::string note() const override {
    if (other_.empty()) return "";
    return absl::StrCat("the images have different sizes (", other_,
                        "); training needs one size: convert again with --resize HEIGHTxWIDTH");
  }

 private:
  // Replaces the file's content by a PNG of the wanted size, without loss beyond the scaling.
  absl::StatusOr<ImageInfo> Resize(const ImageInfo& info, std::string& bytes) const {
    std::vector<uint8_t> pixels(static_cast<size_t>(info.height * info.width * info.channels));
    MUSTER_RETURN_IF_ERROR(DecodeImage(bytes, info.channels, absl::MakeSpan(pixels)));
    pixels = ResizeImage(pixels, {info.height, info.width}, *resize_, info.channels);
    MUSTER_ASSIGN_OR_RETURN(bytes,
                            EncodePng(pixels, resize_->height, resize_->width, info.channels));
    return ReadImageInfo(bytes);
  }

  std::vector<ImageFile> files_;
  std::vector<std::string> folders_;
  const std::optional<ImageSize> resize_;
  std::vector<std::string> classes_;
  std::vector<int64_t> numbers_;  // of folders
  ExampleBuilder builder_;
  ImageInfo first_;
  bool colour_ = false;
  std::string other_;  // the first image of another size
};

}  // namespace

absl::StatusOr<std::unique_ptr<ExampleSource>> ImageFolderSource(
    const std::string& folder, const std::optional<ImageSize>& resize) {
  std::error_code error;
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(error) && name[0] != '.') folders.push_back(name);
  }
  std::sort(folders.begin(), folders.end());
  std::vector<ImageFile> files;
  for (size_t i = 0; i < folders.size(); ++i) {
    const std::string path = base::JoinPath(folder, folders[i]);
    const size_t before = files.size();
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (!IsImageName(entry.path())) continue;
      files.push_back({entry.path().string(), i});
    }
    if (error) return absl::ErrnoToStatus(error.value(), path);
    if (files.size() == before) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": has no .jpg, .jpeg or .png file; each folder must be a class"));
    }
  }
  if (error) return absl::ErrnoToStatus(error.value(), folder);
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": has no folders; create one per class, with its images"));
  }
  std::sort(files.begin(), files.end(), [](const ImageFile& a, const ImageFile& b) {
    return std::tie(a.folder, a.path) < std::tie(b.folder, b.path);
  });
  return std::make_unique<Images>(std::move(files), std::move(folders), resize);
}

}  // namespace muster::data
