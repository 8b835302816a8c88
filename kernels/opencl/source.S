/* The source text of mla.cl as data, with a terminating NUL. */
    .section .rodata
    .global opencl_source
    .type opencl_source, %object
opencl_source:
    .incbin "kernels/opencl/mla.cl"
    .byte 0
    .size opencl_source, . - opencl_source
    .section .note.GNU-stack,"",%progbits
