//! What of the SSD's tables a later process goes on with: which segments are free, which are reused next, and
//! which write buffers hold pages that are not on the device yet.

use super::Log;
use crate::clock::Seconds;
use crate::ssd::write_buffer::Fill;

impl Log {
    /// Takes over what an earlier process left. What it had open counts as sealed: the rest of these segments
    /// is wasted until they come round. The pages in buffers are written, or written again: to the same pages
    /// under the same identity.
    pub(crate) fn recover(&self, epoch: u32) {
        self.table.recover();
        let mut state = self.lock();
        let state = &mut *state;
        let mut segments: Vec<u32> = (0..self.table.count()).collect();
        segments.sort_by_key(|&segment| std::cmp::Reverse(self.table.age_of(segment)));
        state.free.clear();
        state.sealed.clear();
        for segment in segments {
            // Time alone expires nothing here; the upkeep frees what it has.
            let generation = self.table.generation(segment);
            self.count_used(generation);
            match generation == 0 || self.table.is_spent(segment, Seconds(0), epoch) {
                true => state.free.push_back(segment),
                false => state.sealed.push(segment, generation),
            }
        }
        for mut write_buffer in std::mem::take(&mut state.free_write_buffers) {
            let line = &self.lines[write_buffer.number as usize];
            let held = line
                .load(self.write_buffer_bytes)
                .filter(|(place, fill)| self.table.is_of_generation(*place, fill));
            let Some((place, mut fill)) = held else {
                line.clear();
                state.free_write_buffers.push(write_buffer);
                continue;
            };
            if fill.open.bytes > 0 {
                fill = self.close(place, &mut write_buffer, fill);
                line.fill(fill);
            }
            if fill == Fill::default() {
                line.clear();
                state.free_write_buffers.push(write_buffer);
                continue;
            }
            self.table.add_pending(place.segment);
            self.queue_write_buffer(state, place, write_buffer, fill.page_at);
        }
    }
}
