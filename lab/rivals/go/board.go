// serve-board: a board in maps behind locks, with net/http's own routes.
//
// Invariants: nothing is kept; a message keeps its time as text, so that a read formats nothing.

package main

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// page is how many messages are on a page.
const boardPage = 20

type bulletinMessage struct {
	Id      int     `json:"id"`
	Parent  *int    `json:"parent"`
	State   string  `json:"state"`
	Author  string  `json:"author"`
	Title   string  `json:"title"`
	Text    string  `json:"text"`
	Time    string  `json:"time"`
	Edited  *string `json:"edited"`
	Replies int     `json:"replies"`
	Answers int     `json:"answers"`
}

type bulletin struct {
	lock     sync.RWMutex
	name     string
	title    string
	version  int
	changed  string
	messages []bulletinMessage
}

type boardInfo struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	About    string `json:"about"`
	Topics   int    `json:"topics"`
	Messages int    `json:"messages"`
	Changed  string `json:"changed"`
	Version  string `json:"version"`
}

type shown struct {
	Board    boardInfo         `json:"board"`
	Page     int               `json:"page"`
	Pages    int               `json:"pages"`
	Messages []bulletinMessage `json:"messages"`
}

type receipt struct {
	Id      int    `json:"id"`
	Version string `json:"version"`
}

type said struct {
	Author string `json:"author"`
	Title  string `json:"title"`
	Text   string `json:"text"`
}

type boards struct {
	lock sync.RWMutex
	all  map[string]*bulletin
}

var boardTemplate = template.Must(template.New("board").Parse(
	`<!doctype html><html lang="en"><title>{{.Board.Title}}</title><h1>{{.Board.Title}}</h1><ul>` +
		`{{$board := .Board.Name}}{{range .Messages}}<li><h2><a href="/b/{{$board}}/{{.Id}}">{{.Title}}</a></h2>` +
		`<p>{{.Text}}</p><p>{{.Author}}, <time datetime="{{.Time}}">{{.Time}}</time></p></li>{{end}}</ul></html>`))

func serveBoard(listener net.Listener) error {
	all := &boards{all: map[string]*bulletin{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/boards", all.list)
	mux.HandleFunc("POST /api/boards", all.create)
	mux.HandleFunc("GET /api/boards/{board}", all.show)
	mux.HandleFunc("POST /api/boards/{board}/messages", all.write)
	mux.HandleFunc("PUT /api/boards/{board}/messages/{id}", all.edit)
	mux.HandleFunc("GET /b/{board}", all.page)
	return http.Serve(listener, mux)
}

func (all *boards) list(writer http.ResponseWriter, _ *http.Request) {
	all.lock.RLock()
	infos := make([]boardInfo, 0, len(all.all))
	for _, one := range all.all {
		one.lock.RLock()
		infos = append(infos, one.info())
		one.lock.RUnlock()
	}
	all.lock.RUnlock()
	answer(writer, http.StatusOK, infos)
}

func (all *boards) create(writer http.ResponseWriter, request *http.Request) {
	var new said
	if json.NewDecoder(request.Body).Decode(&new) != nil {
		http.Error(writer, "No board is described.", http.StatusBadRequest)
		return
	}
	one := &bulletin{name: strings.ToLower(new.Title), title: new.Title, version: 1, changed: boardTime()}
	info := one.info()
	all.lock.Lock()
	all.all[one.name] = one
	all.lock.Unlock()
	answer(writer, http.StatusCreated, info)
}

func (all *boards) show(writer http.ResponseWriter, request *http.Request) {
	if one := all.find(writer, request); one != nil {
		answer(writer, http.StatusOK, one.shown())
	}
}

func (all *boards) page(writer http.ResponseWriter, request *http.Request) {
	one := all.find(writer, request)
	if one == nil {
		return
	}
	var html bytes.Buffer
	if boardTemplate.Execute(&html, one.shown()) != nil {
		http.Error(writer, "The page could not be made.", http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "text/html; charset=utf-8")
	writer.Header().Set("Content-Length", strconv.Itoa(html.Len()))
	writer.Write(html.Bytes())
}

func (all *boards) write(writer http.ResponseWriter, request *http.Request) {
	one := all.find(writer, request)
	if one == nil {
		return
	}
	var new said
	if json.NewDecoder(request.Body).Decode(&new) != nil {
		http.Error(writer, "Nothing is said.", http.StatusBadRequest)
		return
	}
	now := boardTime()
	one.lock.Lock()
	id := len(one.messages) + 1
	one.messages = append(one.messages, bulletinMessage{
		Id: id, State: "said", Author: new.Author, Title: new.Title, Text: new.Text, Time: now,
	})
	made := one.commit(id, now)
	one.lock.Unlock()
	answer(writer, http.StatusCreated, made)
}

func (all *boards) edit(writer http.ResponseWriter, request *http.Request) {
	one := all.find(writer, request)
	if one == nil {
		return
	}
	var new said
	id, err := strconv.Atoi(request.PathValue("id"))
	if err != nil || json.NewDecoder(request.Body).Decode(&new) != nil {
		http.Error(writer, "Nothing is said.", http.StatusBadRequest)
		return
	}
	now := boardTime()
	one.lock.Lock()
	defer one.lock.Unlock()
	if id < 1 || id > len(one.messages) {
		http.NotFound(writer, request)
		return
	}
	edited := &one.messages[id-1]
	edited.Author, edited.Title, edited.Text, edited.Edited = new.Author, new.Title, new.Text, &now
	answer(writer, http.StatusOK, one.commit(id, now))
}

func (all *boards) find(writer http.ResponseWriter, request *http.Request) *bulletin {
	all.lock.RLock()
	one := all.all[request.PathValue("board")]
	all.lock.RUnlock()
	if one == nil {
		http.NotFound(writer, request)
	}
	return one
}

// shown copies what a page shows, the newest first.
func (one *bulletin) shown() shown {
	one.lock.RLock()
	defer one.lock.RUnlock()
	count := len(one.messages)
	newest := make([]bulletinMessage, 0, boardPage)
	for at := count - 1; at >= 0 && at >= count-boardPage; at-- {
		newest = append(newest, one.messages[at])
	}
	return shown{Board: one.info(), Page: 1, Pages: max(1, (count+boardPage-1)/boardPage), Messages: newest}
}

func (one *bulletin) info() boardInfo {
	count := len(one.messages)
	return boardInfo{
		Name: one.name, Title: one.title, Topics: count, Messages: count, Changed: one.changed,
		Version: "1." + strconv.Itoa(one.version),
	}
}

func (one *bulletin) commit(id int, now string) receipt {
	one.version++
	one.changed = now
	return receipt{Id: id, Version: "1." + strconv.Itoa(one.version)}
}

func boardTime() string {
	return time.Now().UTC().Format(time.RFC3339)
}

func answer(writer http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(writer, "The answer could not be made.", http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	writer.WriteHeader(status)
	writer.Write(body)
}
