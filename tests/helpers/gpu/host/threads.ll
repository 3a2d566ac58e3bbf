; How threads run: see fibers.py, whose memory the external globals are.

@host.tid = external global i32
@host.ntid = external global i32
@host.ctaid = external global i32
; The parameters of the launch, 8 bytes each; the numbers of the threads that the next fiber is to run one after the
; other, counted through all blocks; and how many.
@host.words = external global ptr
@host.numbers = external global ptr
@host.count = external global i64
; The context to go back to and that of the fiber that runs; how many fibers came to a barrier and to their end since
; it was last left; and where memory was touched that no array has.
@host.home = external global i8
@host.own = external global ptr
@host.waiting = external global i64
@host.ended = external global i64
@host.fault = external global i64

declare i32 @swapcontext(ptr, ptr)
declare i32 @setcontext(ptr)
declare void @host.call(ptr)

; __syncthreads: leave the thread until its block's others have come here too.
define void @host.barrier0() noinline {
  %thread = load i32, ptr @host.tid
  %before = load i64, ptr @host.waiting
  %waiting = add i64 %before, 1
  store i64 %waiting, ptr @host.waiting
  %own = load ptr, ptr @host.own
  %left = call i32 @swapcontext(ptr %own, ptr @host.home)
  store i32 %thread, ptr @host.tid
  ret void
}

; What a fiber runs: the kernel for each of its threads, then back for good.
define void @host.run() noinline {
entry:
  %words = load ptr, ptr @host.words
  %numbers = load ptr, ptr @host.numbers
  %count = load i64, ptr @host.count
  %threads = load i32, ptr @host.ntid
  %size = zext i32 %threads to i64
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %place = getelementptr i64, ptr %numbers, i64 %i
  %number = load i64, ptr %place
  %thread = urem i64 %number, %size
  %block = udiv i64 %number, %size
  %thread32 = trunc i64 %thread to i32
  %block32 = trunc i64 %block to i32
  store i32 %thread32, ptr @host.tid
  store i32 %block32, ptr @host.ctaid
  call void @host.call(ptr %words)
  %next = add i64 %i, 1
  br label %head
end:
  %before = load i64, ptr @host.ended
  %ended = add i64 %before, 1
  store i64 %ended, ptr @host.ended
  %own = load ptr, ptr @host.own
  %left = call i32 @swapcontext(ptr %own, ptr @host.home)
  unreachable
}

; The handler of SIGSEGV while threads run: note the address (si_addr) and leave the fiber for good.
define void @host.segv(i32 %signal, ptr %information, ptr %context) noinline {
  %place = getelementptr i8, ptr %information, i64 16
  %address = load i64, ptr %place
  store i64 %address, ptr @host.fault
  %left = call i32 @setcontext(ptr @host.home)
  unreachable
}
