%% serve-hello and serve-board with Cowboy: the servers that rival-load measures.
%%
%% Invariants: boards and messages are rows of two ETS tables, which every connection's process reads and writes by
%% itself; a message keeps its time as text, so that a read formats nothing; the server prints its port first and ends
%% with its input.

-module(rival_cowboy).
-behaviour(cowboy_handler).
-export([main/0, init/2]).

main() ->
    case init:get_plain_arguments() of
        ["--version"] ->
            {ok, _} = application:ensure_all_started(cowboy),
            {ok, Version} = application:get_key(cowboy, vsn),
            io:format("Cowboy ~s, Erlang/OTP ~s~n", [Version, erlang:system_info(otp_release)]);
        ["serve-hello", _] ->
            serve([{"/[...]", ?MODULE, hello}]);
        ["serve-board", _] ->
            rival_boards:new(),
            serve([{"/api/boards", ?MODULE, boards},
                   {"/api/boards/:board", ?MODULE, board},
                   {"/api/boards/:board/messages", ?MODULE, messages},
                   {"/api/boards/:board/messages/:message", ?MODULE, message},
                   {"/b/:board", ?MODULE, page}]);
        _ ->
            io:format(standard_error, "Call it as serve-hello or serve-board with workers=N, or with --version.~n", []),
            halt(2)
    end,
    halt(0).

serve(Routes) ->
    {ok, _} = application:ensure_all_started(cowboy),
    Dispatch = cowboy_router:compile([{'_', Routes}]),
    persistent_term:put(dispatch, Dispatch),
    %% A connection may ask as often as it likes; by default Cowboy closes it after 100 requests.
    Options = #{env => #{dispatch => {persistent_term, dispatch}}, max_keepalive => infinity},
    Transport = #{socket_opts => [{ip, {127, 0, 0, 1}}, {port, 0}, {backlog, 4096}], max_connections => infinity},
    {ok, _} = cowboy:start_clear(rival, Transport, Options),
    io:format("port ~b~n", [ranch:get_port(rival)]),
    until_input_ends().

until_input_ends() ->
    case io:get_line("") of
        Line when is_list(Line) -> until_input_ends();
        _ -> ok
    end.

init(Request, hello) ->
    {ok, cowboy_req:reply(200, #{<<"content-type">> => <<"text/plain">>}, <<"hello, world\n">>, Request), hello};
init(Request, Place) ->
    Answered = act(Place, cowboy_req:method(Request), cowboy_req:binding(board, Request), Request),
    {ok, Answered, Place}.

act(boards, <<"GET">>, _, Request) ->
    told(200, rival_boards:list(), Request);
act(boards, <<"POST">>, _, Request) ->
    with_body(201, Request, fun rival_boards:create/1);
act(board, <<"GET">>, Board, Request) ->
    told(200, rival_boards:shown(Board), Request);
act(messages, <<"POST">>, Board, Request) ->
    with_body(201, Request, fun(Said) -> rival_boards:write(Board, Said) end);
act(message, <<"PUT">>, Board, Request) ->
    Id = binary_to_integer(cowboy_req:binding(message, Request)),
    with_body(200, Request, fun(Said) -> rival_boards:edit(Board, Id, Said) end);
act(page, <<"GET">>, Board, Request) ->
    case rival_boards:page(Board) of
        missing -> missing(Request);
        Page -> cowboy_req:reply(200, #{<<"content-type">> => <<"text/html; charset=utf-8">>}, Page, Request)
    end;
act(_, _, _, Request) ->
    missing(Request).

with_body(Status, Request, Act) ->
    {ok, Body, Read} = cowboy_req:read_body(Request),
    told(Status, Act(jiffy:decode(Body, [return_maps])), Read).

told(_, missing, Request) ->
    missing(Request);
told(Status, Value, Request) ->
    cowboy_req:reply(Status, #{<<"content-type">> => <<"application/json">>}, jiffy:encode(Value), Request).

missing(Request) ->
    cowboy_req:reply(404, #{<<"content-type">> => <<"text/plain">>}, <<"Nothing is there.\n">>, Request).
