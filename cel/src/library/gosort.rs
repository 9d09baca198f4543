//! Sorts as Go's `sort.Slice` does. The sort is not stable: the order of equal elements depends on the algorithm.
//!
//! Source: Go sort/zsortfunc.go, `pdqsort_func`, a pattern-defeating quicksort (arXiv 2106.05123).

/// The maximum length of a slice that is sorted with insertion sort.
const INSERTION: usize = 12;

/// The minimum length of a slice for which the pivot is a median of medians and partial insertion moves
/// elements.
const LONG: usize = 50;

/// Returns the indices `0..length`, sorted as Go's `sort.Slice` sorts them; `less` compares two indices.
pub(crate) fn sorted_indices(length: usize, less: impl FnMut(usize, usize) -> bool) -> Vec<usize> {
    let mut sorter = Sorter { order: (0..length).collect(), less };
    sorter.sort(0, length, usize::BITS - length.leading_zeros());
    sorter.order
}

struct Sorter<F> {
    order: Vec<usize>,
    less: F,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Unknown,
    Increasing,
    Decreasing,
}

impl<F: FnMut(usize, usize) -> bool> Sorter<F> {
    /// Returns whether the element at `left` sorts before the one at `right`.
    fn less(&mut self, left: usize, right: usize) -> bool {
        let (Some(&left), Some(&right)) = (self.order.get(left), self.order.get(right)) else { return false };
        (self.less)(left, right)
    }

    fn swap(&mut self, left: usize, right: usize) {
        if left < self.order.len() && right < self.order.len() {
            self.order.swap(left, right);
        }
    }

    fn sort(&mut self, mut start: usize, mut end: usize, mut bad_pivots: u32) {
        let (mut was_balanced, mut was_partitioned) = (true, true);
        loop {
            let length = end - start;
            if length <= INSERTION {
                return self.insert(start, end);
            }
            if bad_pivots == 0 {
                return self.heap(start, end);
            }
            if !was_balanced {
                self.break_patterns(start, end);
                bad_pivots -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(start, end);
            if hint == Hint::Decreasing {
                if let Some(range) = self.order.get_mut(start..end) {
                    range.reverse();
                }
                pivot = (end - 1) - (pivot - start);
                hint = Hint::Increasing;
            }
            if was_balanced && was_partitioned && hint == Hint::Increasing && self.insert_some(start, end) {
                return;
            }
            if start > 0 && !self.less(start - 1, pivot) {
                start = self.partition_equal(start, end, pivot);
                continue;
            }
            let (middle, partitioned) = self.partition(start, end, pivot);
            was_partitioned = partitioned;
            let (left, right) = (middle - start, end - middle);
            if left < right {
                was_balanced = left >= length / 8;
                self.sort(start, middle, bad_pivots);
                start = middle + 1;
            } else {
                was_balanced = right >= length / 8;
                self.sort(middle + 1, end, bad_pivots);
                end = middle;
            }
        }
    }

    fn insert(&mut self, start: usize, end: usize) {
        for next in start + 1..end {
            let mut at = next;
            while at > start && self.less(at, at - 1) {
                self.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    fn heap(&mut self, start: usize, end: usize) {
        let length = end - start;
        for root in (0..=(length - 1) / 2).rev() {
            self.sift_down(root, length, start);
        }
        for last in (0..length).rev() {
            self.swap(start, start + last);
            self.sift_down(0, last, start);
        }
    }

    fn sift_down(&mut self, mut root: usize, length: usize, first: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= length {
                return;
            }
            if child + 1 < length && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.swap(first + root, first + child);
            root = child;
        }
    }

    /// Moves elements less than the pivot before it, and returns the pivot's new position and whether the slice was
    /// already partitioned.
    fn partition(&mut self, start: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.swap(start, pivot);
        let (mut low, mut high) = (start + 1, end - 1);
        let mut partitioned = true;
        loop {
            while low <= high && self.less(low, start) {
                low += 1;
            }
            while low <= high && !self.less(high, start) {
                high -= 1;
            }
            if low > high {
                break;
            }
            self.swap(low, high);
            partitioned = false;
            low += 1;
            high -= 1;
        }
        self.swap(high, start);
        (high, partitioned)
    }

    /// Moves elements equal to the pivot before greater elements, and returns the index of the first greater element.
    ///
    /// The slice must not contain elements less than the pivot.
    fn partition_equal(&mut self, start: usize, end: usize, pivot: usize) -> usize {
        self.swap(start, pivot);
        let (mut low, mut high) = (start + 1, end - 1);
        loop {
            while low <= high && !self.less(start, low) {
                low += 1;
            }
            while low <= high && self.less(start, high) {
                high -= 1;
            }
            if low > high {
                return low;
            }
            self.swap(low, high);
            low += 1;
            high -= 1;
        }
    }

    /// Inserts up to five elements, and returns whether the slice is then sorted.
    fn insert_some(&mut self, start: usize, end: usize) -> bool {
        let mut at = start + 1;
        for _ in 0..5 {
            while at < end && !self.less(at, at - 1) {
                at += 1;
            }
            if at == end {
                return true;
            }
            if end - start < LONG {
                return false;
            }
            self.swap(at, at - 1);
            if at - start >= 2 {
                // As in Go, continues to the beginning of the whole slice, not only of this part.
                for left in (1..at).rev() {
                    if !self.less(left, left - 1) {
                        break;
                    }
                    self.swap(left, left - 1);
                }
            }
            if end - at >= 2 {
                for right in at + 1..end {
                    if !self.less(right, right - 1) {
                        break;
                    }
                    self.swap(right, right - 1);
                }
            }
        }
        false
    }

    fn break_patterns(&mut self, start: usize, end: usize) {
        let length = end - start;
        if length < 8 {
            return;
        }
        let mut random = length as u64;
        let modulus = 1_u64 << (u64::BITS - random.leading_zeros());
        let middle = start + (length / 4) * 2;
        for at in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = usize::try_from(random & (modulus - 1)).unwrap_or_default();
            let other = if other >= length { other - length } else { other };
            self.swap(at, start + other);
        }
    }

    fn choose_pivot(&mut self, start: usize, end: usize) -> (usize, Hint) {
        let length = end - start;
        let mut swaps = 0;
        let [mut first, mut second, mut third] = [1, 2, 3].map(|quarter| start + length / 4 * quarter);
        if length >= 8 {
            if length >= LONG {
                first = self.median(first - 1, first, first + 1, &mut swaps);
                second = self.median(second - 1, second, second + 1, &mut swaps);
                third = self.median(third - 1, third, third + 1, &mut swaps);
            }
            second = self.median(first, second, third, &mut swaps);
        }
        let hint = match swaps {
            0 => Hint::Increasing,
            12 => Hint::Decreasing,
            _ => Hint::Unknown,
        };
        (second, hint)
    }

    fn median(&mut self, a: usize, b: usize, c: usize, swaps: &mut u32) -> usize {
        let (a, b) = self.ordered(a, b, swaps);
        let (b, _) = self.ordered(b, c, swaps);
        self.ordered(a, b, swaps).1
    }

    fn ordered(&mut self, a: usize, b: usize, swaps: &mut u32) -> (usize, usize) {
        if self.less(b, a) {
            *swaps += 1;
            (b, a)
        } else {
            (a, b)
        }
    }
}
