%% Boards in ETS: `boards` has {Name, Title, Versions, Messages, Changed}, `messages` has {{Name, Id}, What}.
%%
%% Invariant: an id is given out by a counter of the board's row, so writers need no process of their own.

-module(rival_boards).
-export([new/0, list/0, create/1, shown/1, write/2, edit/3, page/1]).

-define(PAGE, 20).

new() ->
    Options = [named_table, public, {read_concurrency, true}, {write_concurrency, true}],
    boards = ets:new(boards, [set | Options]),
    messages = ets:new(messages, [ordered_set | Options]).

list() ->
    [info(Row) || Row <- ets:tab2list(boards)].

create(#{<<"title">> := Title}) ->
    Name = string:lowercase(Title),
    Row = {Name, Title, 1, 0, now_as_text()},
    true = ets:insert(boards, Row),
    info(Row).

write(Name, Said) ->
    case ets:member(boards, Name) of
        false ->
            missing;
        true ->
            [Version, Id] = ets:update_counter(boards, Name, [{3, 1}, {4, 1}]),
            Now = now_as_text(),
            true = ets:insert(messages, {{Name, Id}, message(Id, Said, Now, null)}),
            true = ets:update_element(boards, Name, {5, Now}),
            receipt(Id, Version)
    end.

edit(Name, Id, Said) ->
    case ets:lookup(messages, {Name, Id}) of
        [] ->
            missing;
        [{Key, {#{time := Time}, _}}] ->
            Version = ets:update_counter(boards, Name, {3, 1}),
            Now = now_as_text(),
            true = ets:insert(messages, {Key, message(Id, Said, Time, Now)}),
            true = ets:update_element(boards, Name, {5, Now}),
            receipt(Id, Version)
    end.

shown(Name) ->
    case ets:lookup(boards, Name) of
        [] ->
            missing;
        [{_, _, _, Count, _} = Row] ->
            Pages = max(1, (Count + ?PAGE - 1) div ?PAGE),
            #{board => info(Row), page => 1, pages => Pages, messages => [It || {It, _} <- newest(Name, Count)]}
    end.

page(Name) ->
    case ets:lookup(boards, Name) of
        [] ->
            missing;
        [{_, Title, _, Count, _}] ->
            [<<"<!doctype html><html lang=\"en\"><title>">>, escaped(Title), <<"</title><h1>">>, escaped(Title),
             <<"</h1><ul>">>, [item(Name, Message) || Message <- newest(Name, Count)], <<"</ul></html>">>]
    end.

item(Name, {#{id := Id, time := Time}, {Author, Title, Text}}) ->
    [<<"<li><h2><a href=\"/b/">>, escaped(Name), $/, integer_to_binary(Id), <<"\">">>, escaped(Title),
     <<"</a></h2><p>">>, escaped(Text), <<"</p><p>">>, escaped(Author), <<", <time datetime=\"">>, Time, <<"\">">>,
     Time, <<"</time></p></li>">>].

escaped(Text) ->
    case binary:match(Text, [<<"&">>, <<"<">>, <<">">>, <<"\"">>, <<"'">>]) of
        nomatch -> Text;
        _ -> by_byte(Text)
    end.

by_byte(Text) ->
    << <<(escape(Byte))/binary>> || <<Byte>> <= Text >>.

escape($&) -> <<"&amp;">>;
escape($<) -> <<"&lt;">>;
escape($>) -> <<"&gt;">>;
escape($") -> <<"&#34;">>;
escape($') -> <<"&#39;">>;
escape(Byte) -> <<Byte>>.

%% What a page shows, the newest first. One that is just being written is not there yet.
newest(Name, Count) ->
    Ids = lists:seq(Count, max(1, Count - ?PAGE + 1), -1),
    [It || Id <- Ids, {_, It} <- ets:lookup(messages, {Name, Id})].

message(Id, Said, Time, Edited) ->
    Author = maps:get(<<"author">>, Said, <<>>),
    Title = maps:get(<<"title">>, Said, <<>>),
    Text = maps:get(<<"text">>, Said, <<>>),
    Value = #{id => Id, parent => null, state => <<"said">>, author => Author, title => Title, text => Text,
              time => Time, edited => Edited, replies => 0, answers => 0},
    {Value, {Author, Title, Text}}.

info({Name, Title, Version, Count, Changed}) ->
    #{name => Name, title => Title, about => <<>>, topics => Count, messages => Count, changed => Changed,
      version => version(Version)}.

receipt(Id, Version) ->
    #{id => Id, version => version(Version)}.

version(Number) ->
    <<"1.", (integer_to_binary(Number))/binary>>.

now_as_text() ->
    list_to_binary(calendar:system_time_to_rfc3339(erlang:system_time(second), [{offset, "Z"}])).
