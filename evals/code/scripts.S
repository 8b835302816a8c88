/* scripts.S - embeds the Python drivers as strings in the program. */
    .macro script name, file
    .global script_\name
    .type script_\name, @object
script_\name:
    .incbin "\file"
    .byte 0
    .size script_\name, . - script_\name
    .endm

    .section .rodata
    script probe, "evals/code/probe.py"
    script common, "evals/code/common.py"
    script real, "evals/code/real.py"
    script lcb, "evals/code/lcb.py"
    script unit, "evals/code/unit.py"
    script twist, "evals/code/twist.py"
    .section .note.GNU-stack, "", %progbits
