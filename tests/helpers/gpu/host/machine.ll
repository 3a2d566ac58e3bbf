; What a GPU has in hardware, for any machine. Names are those of NVVM's intrinsics, `llvm.nvvm.` replaced by `host.`.

; Special registers of the thread that runs; grids and blocks have one dimension.
@host.tid = external global i32
@host.ntid = external global i32
@host.ctaid = external global i32
@host.nctaid = external global i32

define i32 @host.read.ptx.sreg.tid.x() alwaysinline {
  %value = load i32, ptr @host.tid
  ret i32 %value
}
define i32 @host.read.ptx.sreg.ntid.x() alwaysinline {
  %value = load i32, ptr @host.ntid
  ret i32 %value
}
define i32 @host.read.ptx.sreg.ctaid.x() alwaysinline {
  %value = load i32, ptr @host.ctaid
  ret i32 %value
}
define i32 @host.read.ptx.sreg.nctaid.x() alwaysinline {
  %value = load i32, ptr @host.nctaid
  ret i32 %value
}
define i32 @host.read.ptx.sreg.tid.y() alwaysinline { ret i32 0 }
define i32 @host.read.ptx.sreg.tid.z() alwaysinline { ret i32 0 }
define i32 @host.read.ptx.sreg.ctaid.y() alwaysinline { ret i32 0 }
define i32 @host.read.ptx.sreg.ctaid.z() alwaysinline { ret i32 0 }
define i32 @host.read.ptx.sreg.ntid.y() alwaysinline { ret i32 1 }
define i32 @host.read.ptx.sreg.ntid.z() alwaysinline { ret i32 1 }
define i32 @host.read.ptx.sreg.nctaid.y() alwaysinline { ret i32 1 }
define i32 @host.read.ptx.sreg.nctaid.z() alwaysinline { ret i32 1 }

; How libdevice is compiled: square roots are exact (__CUDA_PREC_SQRT), subnormals are kept (not __CUDA_FTZ), and of code
; for several architectures (__CUDA_ARCH) it takes the oldest.
define i32 @__nvvm_reflect(ptr %asked) alwaysinline {
  %place = getelementptr i8, ptr %asked, i64 7
  %letter = load i8, ptr %place
  %precise = icmp eq i8 %letter, 80
  %answer = zext i1 %precise to i32
  ret i32 %answer
}

; Halves of a double.
define i32 @host.d2i.hi(double %a) alwaysinline {
  %bits = bitcast double %a to i64
  %shifted = lshr i64 %bits, 32
  %half = trunc i64 %shifted to i32
  ret i32 %half
}
define i32 @host.d2i.lo(double %a) alwaysinline {
  %bits = bitcast double %a to i64
  %half = trunc i64 %bits to i32
  ret i32 %half
}
define double @host.lohi.i2d(i32 %lo, i32 %hi) alwaysinline {
  %low = zext i32 %lo to i64
  %high = zext i32 %hi to i64
  %shifted = shl i64 %high, 32
  %bits = or i64 %low, %shifted
  %a = bitcast i64 %bits to double
  ret double %a
}

; Arithmetic, rounded to nearest.
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.floor.f64(double)
declare double @llvm.ceil.f64(double)
declare double @llvm.trunc.f64(double)
declare double @llvm.rint.f64(double)
declare double @llvm.fabs.f64(double)
declare float @llvm.fabs.f32(float)
declare double @llvm.minnum.f64(double, double)
declare double @llvm.maxnum.f64(double, double)

define double @host.fma.rn.d(double %a, double %b, double %c) alwaysinline {
  %r = call double @llvm.fma.f64(double %a, double %b, double %c)
  ret double %r
}
define double @host.add.rn.d(double %a, double %b) alwaysinline {
  %r = fadd double %a, %b
  ret double %r
}
define double @host.mul.rn.d(double %a, double %b) alwaysinline {
  %r = fmul double %a, %b
  ret double %r
}
define double @host.div.rn.d(double %a, double %b) alwaysinline {
  %r = fdiv double %a, %b
  ret double %r
}
define double @host.rcp.rn.d(double %a) alwaysinline {
  %r = fdiv double 1.0, %a
  ret double %r
}
define double @host.sqrt.rn.d(double %a) alwaysinline {
  %r = call double @llvm.sqrt.f64(double %a)
  ret double %r
}
; A GPU's has about 20 bits as well, though not always the same: what libdevice makes of it may differ in its last bit.
define double @host.rcp.approx.ftz.d(double %a) alwaysinline {
  %exact = fdiv double 1.0, %a
  %bits = bitcast double %exact to i64
  %upper = and i64 %bits, -4294967296
  %r = bitcast i64 %upper to double
  ret double %r
}
define double @host.floor.d(double %a) alwaysinline {
  %r = call double @llvm.floor.f64(double %a)
  ret double %r
}
define double @host.ceil.d(double %a) alwaysinline {
  %r = call double @llvm.ceil.f64(double %a)
  ret double %r
}
define double @host.trunc.d(double %a) alwaysinline {
  %r = call double @llvm.trunc.f64(double %a)
  ret double %r
}
define double @host.fabs.d(double %a) alwaysinline {
  %r = call double @llvm.fabs.f64(double %a)
  ret double %r
}
define float @host.fabs.f(float %a) alwaysinline {
  %r = call float @llvm.fabs.f32(float %a)
  ret float %r
}
define float @host.fabs.ftz.f(float %a) alwaysinline {
  %r = call float @llvm.fabs.f32(float %a)
  ret float %r
}
define double @host.fmin.d(double %a, double %b) alwaysinline {
  %r = call double @llvm.minnum.f64(double %a, double %b)
  ret double %r
}
define double @host.fmax.d(double %a, double %b) alwaysinline {
  %r = call double @llvm.maxnum.f64(double %a, double %b)
  ret double %r
}

; To and from whole numbers.
define i32 @host.d2i.rn(double %a) alwaysinline {
  %whole = call double @llvm.rint.f64(double %a)
  %r = fptosi double %whole to i32
  ret i32 %r
}
define i32 @host.d2i.rz(double %a) alwaysinline {
  %r = fptosi double %a to i32
  ret i32 %r
}
define i64 @host.d2ll.rn(double %a) alwaysinline {
  %whole = call double @llvm.rint.f64(double %a)
  %r = fptosi double %whole to i64
  ret i64 %r
}
define i64 @host.d2ll.rz(double %a) alwaysinline {
  %r = fptosi double %a to i64
  ret i64 %r
}
define double @host.i2d.rn(i32 %a) alwaysinline {
  %r = sitofp i32 %a to double
  ret double %r
}
define double @host.ll2d.rn(i64 %a) alwaysinline {
  %r = sitofp i64 %a to double
  ret double %r
}
define double @host.ull2d.rn(i64 %a) alwaysinline {
  %r = uitofp i64 %a to double
  ret double %r
}
define i64 @host.mulhi.ull(i64 %a, i64 %b) alwaysinline {
  %x = zext i64 %a to i128
  %y = zext i64 %b to i128
  %product = mul i128 %x, %y
  %upper = lshr i128 %product, 64
  %r = trunc i128 %upper to i64
  ret i64 %r
}
define i64 @host.mulhi.ll(i64 %a, i64 %b) alwaysinline {
  %x = sext i64 %a to i128
  %y = sext i64 %b to i128
  %product = mul i128 %x, %y
  %upper = lshr i128 %product, 64
  %r = trunc i128 %upper to i64
  ret i64 %r
}
