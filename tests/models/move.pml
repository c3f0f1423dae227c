/* move: an item goes to its other key once, whole, and nothing that the application writes is lost or comes back.

The application writes an attribute of the old item, and later erases it from the new one. The worker reads the item, then
moves it by one transaction. Its record, the delete of the old item, may arrive late. */
#define NONE 9
#ifndef WRITES
#define WRITES 2
#endif
byte old = 0, new = NONE;       /* the attribute on the item under either key; NONE: there is no such item. 0: it is missing */
byte writes = WRITES; bool hint = true, deleted; byte shown; bool erased;

active proctype application() {
end: do
  :: atomic { writes > 0 && old != NONE -> writes--; old = writes + 1; printf("application: the attribute of the old item = %d\n", old); hint = true }
  :: atomic { new != NONE && new != 0 && !erased -> erased = true; new = 0; printf("application: erase the attribute of the new item\n") }
  :: atomic { new == NONE && writes > 0 -> writes--; new = 8; printf("application: put an item under the new key\n") }
  od
}

active proctype worker() {
  byte seen, taken;
end: do
  :: atomic { hint && old != NONE -> hint = false; taken = new; printf("read the new key: %d\n", taken) }
     atomic { seen = old; printf("read the old item: %d\n", seen) }
     atomic {
       if
       :: taken != NONE -> printf("park: the new key is taken\n")
#ifdef NO_ATTRIBUTE_GUARD       /* move: every attribute that was seen is compared */
       :: taken == NONE && old != NONE && new == NONE ->
#else
#ifdef NO_FREE_KEY              /* move: the new key must be free */
       :: taken == NONE && old == seen ->
#else
       :: taken == NONE && old == seen && new == NONE ->
#endif
#endif
          assert(old == seen);  /* no write of the application is lost */
          assert(new == NONE);  /* no item of the application is overwritten */
          printf("  written: the item goes to the new key with %d\n", seen); shown = old; old = NONE; new = seen; deleted = true
       :: else -> printf("  refused: the item is not as it was read\n"); hint = true
       fi; seen = 0; taken = 0 }
  :: atomic { deleted -> deleted = false; printf("record of the delete: it shows %d\n", shown) }
     atomic {
       if
       :: new != NONE && new != shown && shown != 0 ->
#ifdef NO_REPORT_ONLY           /* move: a delete record that arrives late is reported, and the item is not rewritten */
          printf("  written: the attribute of the new item = %d\n", shown); new = shown; assert(!erased)
#else
          printf("report that the new item lacks what the old one had\n")
#endif
       :: else
       fi }
  od
}
