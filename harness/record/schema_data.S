/* schema_data.S - the JSON Schema of result files, as bytes in the program. */
    .section .rodata
    .global results_schema_text
    .global results_schema_text_end
    .type results_schema_text, @object
    .balign 16
results_schema_text:
    .incbin "harness/record/snapmla.run.schema.json"
results_schema_text_end:
    .size results_schema_text, results_schema_text_end - results_schema_text
    .section .note.GNU-stack, "", %progbits
