#include "train/wire/message.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace muster::train::wire {

Payload::Payload(std::vector<Chunk> pieces) : pieces_(std::move(pieces)) {
  for (const Chunk& piece : pieces_) size_ += piece.size;
}

void Payload::Copy(size_t offset, size_t size, void* to) const {
  auto* out = static_cast<std::byte*>(to);
  for (const Chunk& piece : pieces_) {
    if (size == 0) return;
    if (offset >= piece.size) {
      offset -= piece.size;
      continue;
    }
    const size_t n = std::min(size, piece.size - offset);
    std::memcpy(out, static_cast<const std::byte*>(piece.data) + offset, n);
    out += n;
    size -= n;
    offset = 0;
  }
}

Chunk Payload::InOnePiece() const {
  if (size_ == 0) return {};
  const bool aligned =
      reinterpret_cast<uintptr_t>(pieces_.front().data) % alignof(std::max_align_t) == 0;
  if (pieces_.size() == 1 && aligned) return pieces_.front();
  std::shared_ptr<void> copy(std::malloc(size_), std::free);
  if (copy == nullptr) throw std::bad_alloc();
  Copy(0, size_, copy.get());
  return {copy.get(), size_, copy};
}

}  // namespace muster::train::wire
