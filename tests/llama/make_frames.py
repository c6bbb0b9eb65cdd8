"""make_frames.py: write tests/llama/frames.json: templates of chats in the forms in which models have them, and what the package jinja2 makes of them
for some messages, with which frames_test.c is compared."""
import json, os
import jinja2

EOS = "{{ eos_token }}"
BY_ROLE = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
REPLY = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
INST = ("{{ bos_token }}{% if messages[0]['role'] == 'system' %}SYSTEM{% else %}{{ '[INST] ' + messages[0]['content'] }}{% endif %}{{ 'CLOSE' }}")
TEMPLATES = {
    "chatml": BY_ROLE + REPLY,
    "chatml with words": "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou answer in one line.<|im_end|>\\n' }}{% endif %}" + BY_ROLE + REPLY,
    "llama3": "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}{% endfor %}"
              "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}",
    "phi3": "{% for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + '<|end|>\\n' }}{% endfor %}{{ '<|assistant|>\\n' }}{# <|user|> #}",
    "zephyr": "{% for m in messages %}{% if m['role'] == 'user' %}{{ '<|user|>\\n' + m['content'] + eos_token }}{% elif m['role'] == 'system' %}"
              "{{ '<|system|>\\n' + m['content'] + eos_token }}{% endif %}{{ '\\n' }}{% endfor %}{{ '<|assistant|>\\n' }}",
    "llama2": INST.replace("SYSTEM", "{{ '[INST] <<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' + messages[1]['content'] }}").replace("CLOSE", " [/INST]"),
    "mistral": INST.replace("SYSTEM", "{{ '[INST] ' + messages[0]['content'] + '\\n\\n' + messages[1]['content'] }}").replace("CLOSE", " [/INST]"),
    "mistral, later": INST.replace("SYSTEM", "{{ '[INST] ' + messages[0]['content'] + '\\n\\n' + messages[1]['content'] }}").replace("CLOSE", "[/INST]"),
    "alpaca": "{% for m in messages %}{% if m['role'] == 'user' %}{{ '### Instruction:\\n' }}{% endif %}{{ m['content'] + '\\n\\n' }}{% endfor %}{{ '### Response:\\n' }}",
    "vicuna": "{% for m in messages %}{% if m['role'] == 'user' %}{{ 'USER: ' + m['content'] + ' ' }}{% else %}{{ m['content'] + ' ' }}{% endif %}{% endfor %}{{ 'ASSISTANT:' }}",
}
MESSAGES = [(None, "Why is the sky blue?"), ("You are terse.", "1 + 1 = ?"), ("Answer\nin verse.", "  spaces, and 'quotes' <|im_end|> here")]

environment = jinja2.Environment()
cases = []
for name, template in TEMPLATES.items():
    for system, user in MESSAGES:
        user = user.strip() if name == "llama3" else user
        messages = [{"role": "system", "content": system}] * bool(system) + [{"role": "user", "content": user}]
        text = environment.from_string(template).render(messages=messages, add_generation_prompt=True, bos_token="<bos>", eos_token="<eos>")
        cases.append({"name": name, "template": template, "user": user, "text": text} | ({"system": system} if system else {}))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames.json"), "w") as f:
    json.dump(cases, f, indent=0)
    f.write("\n")
