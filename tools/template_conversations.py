"""Our own conversations that reach every branch of the known chat templates."""

SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "<|endoftext|>", "pad_token": "<pad>",
                  "unk_token": "<unk>"}

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather of a place: temperature & \"sky\".",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "City, e.g. Zürich"},
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "days": {"type": ["integer", "null"], "minimum": 0, "maximum": 1.5e3},
        "options": {"type": "object", "properties": {"wind": {"type": "boolean"}},
                    "additionalProperties": False}},
        "required": ["place"]}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Finds <b>pages</b> 'fast'.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}}


def call(name, arguments, **more):
    return {"type": "function", "id": "c" + name, "function": {"name": name, "arguments": arguments},
            **more}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def tool(text):
    return {"role": "tool", "name": "get_weather", "content": text}


SYSTEM = {"role": "system", "content": "Answer in one word."}
THOUGHT = "<think>\nTwo and two.\n</think>\n\nFour."

_VARIABLES = {
    "user": {"messages": [user("What is 2 + 2?")]},
    "system": {"messages": [SYSTEM, user("Hi")]},
    "answered": {"messages": [user("Hi"), assistant("Hello!")]},
    "turns": {"messages": [SYSTEM, user("a"), assistant("b"), user("c"), assistant("d"), user("e")]},
    "second_system": {"messages": [SYSTEM, user("a"), {"role": "system", "content": "Be kind."}]},
    "empty_content": {"messages": [user(""), assistant(""), user("\n\n")]},
    "unicode": {"messages": [SYSTEM, user("Grüße aus 東京 🗼\u2028\u00a0 e\u0301 {{ x }} {% if %}")]},
    "markup": {"messages": [user("<|im_start|>system\n<b>&amp;</b> \"q\" 'q' \\n \t\r\n end ")]},
    "thinking": {"messages": [user("a"), assistant(THOUGHT), user("b"), assistant(THOUGHT)]},
    "thinking_only": {"messages": [user("a"), assistant("<think>\nlost"), user("b")]},
    "two_thoughts": {"messages": [user("a"), assistant(THOUGHT + THOUGHT)]},
    "reasoning": {"messages": [user("a"), assistant("Four.", reasoning_content="\nTwo.\n"),
                               user("b"), assistant("Five.", reasoning_content="Three.")]},
    "reasoning_none": {"messages": [user("a"), assistant("x", reasoning_content=None)]},
    "no_think": {"messages": [user("a")], "enable_thinking": False},
    "think": {"messages": [user("a")], "enable_thinking": True},
    "tools": {"messages": [user("Weather?")], "tools": [WEATHER, SEARCH]},
    "tools_system": {"messages": [SYSTEM, user("Weather?")], "tools": [WEATHER]},
    "tools_empty": {"messages": [SYSTEM, user("Weather?")], "tools": []},
    "call": {"messages": [SYSTEM, user("Weather?"),
                          assistant("", tool_calls=[call("get_weather", {"place": "Zürich",
                                                                         "days": 3, "x": 0.1,
                                                                         "y": None, "z": [True]})]),
                          tool("{\"c\": 21}"), assistant("Warm.")], "tools": [WEATHER]},
    "call_text": {"messages": [user("Weather?"),
                               assistant("Let me look.", tool_calls=[
                                   call("get_weather", "{\"place\": \"Rom\"}"),
                                   call("search", "{}")]),
                               tool("21"), tool("none"), user("And?")], "tools": [WEATHER, SEARCH]},
    "call_none": {"messages": [user("Weather?"),
                               assistant(None, tool_calls=[call("search", {"query": "a\"b\\c\n"})]),
                               tool("21")], "tools": [SEARCH]},
    "call_bare": {"messages": [user("W?"), {"role": "assistant", "content": "",
                                           "tool_calls": [{"name": "f", "arguments": {"a": 1}}]},
                               tool("1"), user("<tool_response>\nx\n</tool_response>"),
                               assistant("ok")]},
    "steps": {"messages": [user("Go"),
                           assistant("<think>\none\n</think>\n\n", tool_calls=[call("f", {})]),
                           tool("1"),
                           assistant("mid", reasoning_content="two", tool_calls=[call("f", {})]),
                           tool("2"), tool("3"), assistant("<think>\nthree\n</think>\n\ndone")]},
    "functions": {"messages": [{**SYSTEM, "functions": "[f]"}, {**user("a"), "functions": "[g]"},
                               assistant("b", function_calls="f()"),
                               {"role": "environment", "content": "1"}, user("c")]},
    "function_calls_none": {"messages": [user("a"), assistant(None, function_calls="f()")]},
    "parts": {"messages": [user([{"type": "text", "text": "Look"}]), assistant("ok")]},
    "content_none": {"messages": [user("a"), assistant(None)]},
    "content_missing": {"messages": [user("a"), {"role": "assistant"}]},
    "role_unknown": {"messages": [{"role": "critic", "content": "no"}, user("a")]},
    "assistant_first": {"messages": [assistant("Hello"), user("a")]},
    "numbers": {"messages": [user("a"), assistant("", tool_calls=[call("f", {
        "i": -12, "big": 9007199254740993, "f": 1.0, "g": 1e-7, "h": 1e22, "k": 123456.789})])]},
    "empty": {"messages": []},
    "no_messages": {},
}
CONVERSATIONS = [{"name": name, "variables": value} for name, value in _VARIABLES.items()]
